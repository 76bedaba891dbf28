export default function NodesPage() {
  return <div className="page" />;
}
