export default function PolicyPage() {
  return <div className="page" />;
}
