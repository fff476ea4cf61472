/** A receiver of webhooks that keeps each event on the disk before it acknowledges it. It may be killed at any time. */
import { appendFileSync, fsyncSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { verifyWebhook } from '../../../src/kit/identity/webhook-signature.ts';

const { FIXTURE_FILE, FIXTURE_PORT, FIXTURE_SECRET } = process.env as Record<string, string>;
const fd = openSync(FIXTURE_FILE!, 'a');
const line = (request: string | string[] | undefined, id: string) => `${request}\t${id}\n`;
const known = new Set(readFileSync(FIXTURE_FILE!, 'utf8').split('\n'));

createServer(async (request, response) => {
  const body = await text(request);
  const headers = request.headers as Record<string, string>;
  if (!verifyWebhook({ headers, body, secrets: [FIXTURE_SECRET!], nowMs: Date.now() }).ok) {
    response.writeHead(401).end();
    return;
  }
  const value = JSON.parse(body) as { type?: string; challenge?: string; eventId?: string };
  if (value.type === 'verification') {
    response.writeHead(200).end(JSON.stringify({ challenge: value.challenge }));
    return;
  }
  const entry = line(headers['x-mcp-subscription-id'], value.eventId ?? `control ${value.type}`);
  // A repetition, whose first acknowledgement was lost, is recognised by its id.
  if (known.has(entry.trimEnd())) {
    appendFileSync(`${FIXTURE_FILE}.repeated`, entry);
  } else {
    known.add(entry.trimEnd());
    appendFileSync(fd, entry);
    fsyncSync(fd);
  }
  response.writeHead(204).end();
}).listen(Number(FIXTURE_PORT), '127.0.0.1');
