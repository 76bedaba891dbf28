export default function NewEnvPage() {
  return <div className="page" />;
}
