export default function UsersPage() {
  return <div className="page" />;
}
