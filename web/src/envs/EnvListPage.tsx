export default function EnvListPage() {
  return <div className="page" />;
}
