export default function OverviewPage() {
  return <div className="page" />;
}
