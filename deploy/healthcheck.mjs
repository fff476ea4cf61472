// Health check of the container: requests HEALTH_URL, the /healthz of its daemon. With TLS it uses the name of the certificate.
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
