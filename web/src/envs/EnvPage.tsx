export default function EnvPage() {
  return <div className="page" />;
}
