export default function GroupsPage() {
  return <div className="page" />;
}
