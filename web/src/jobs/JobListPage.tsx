export default function JobListPage() {
  return <div className="page" />;
}
