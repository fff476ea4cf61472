// Asks the daemon of this container whether it is alive: HEALTH_URL names its /healthz. What listens with a certificate is asked by the name in it.
const url = process.env.HEALTH_URL;
if (!url) {
  console.error('HEALTH_URL is not set: give the /healthz of the daemon, such as http://127.0.0.1:9096/healthz');
  process.exit(1);
}
try {
  const response = await fetch(url, { signal: AbortSignal.timeout(4000) });
  if (!response.ok) throw new Error(`answered ${response.status}`);
} catch (error) {
  console.error(`${url}: ${error.cause?.message ?? error.message}`);
  process.exit(1);
}
