export default function WorkloadsPage() {
  return <div className="page" />;
}
