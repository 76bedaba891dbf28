export default function AuditPage() {
  return <div className="page" />;
}
