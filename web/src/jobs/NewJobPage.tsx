export default function NewJobPage() {
  return <div className="page" />;
}
