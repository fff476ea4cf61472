/**
 * An agent that a wake starts: it accepts turns at /chat, each once, and stores them on disk. It needs Node 24 and no
 * packages.
 */
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';

const digest = (text: string) => createHash('sha256').update(text).digest();
const token = digest(`Bearer ${process.env.REVEILLE_MACHINE_TOKEN}`);
const book = new DatabaseSync('turns.db');
book.exec('PRAGMA synchronous=FULL');
book.exec('CREATE TABLE IF NOT EXISTS turns (fire TEXT PRIMARY KEY, conversation TEXT, turn TEXT, message TEXT)');

async function bodyOf(request: IncomingMessage): Promise<{ message: string; conversation_id?: string }> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const server = createServer(async (request, response) => {
  const answer = (status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (request.method === 'GET') {
    answer(200, { status: 'ok', busy: false, queued: 0 });
    return;
  }
  if (!timingSafeEqual(digest(request.headers.authorization ?? ''), token)) {
    answer(401, { ok: false, error: { code: 'unauthorized', message: 'no', retryable: false } });
    return;
  }
  const { message, conversation_id: conversation = randomUUID() } = await bodyOf(request);
  const fire = String(request.headers['x-matrix-wake-fire'] ?? randomUUID());
  // Written before the acknowledgement: when the response is lost, the same occurrence arrives again and stays one
  // turn.
  const added = book
    .prepare('INSERT OR IGNORE INTO turns VALUES (?, ?, ?, ?)')
    .run(fire, conversation, randomUUID(), message);
  const kept = book.prepare('SELECT conversation, turn FROM turns WHERE fire = ?').get(fire)!;
  const isNew = added.changes === 1;
  const data = { conversation_id: kept.conversation, turn_id: kept.turn, deduped: !isNew };
  answer(isNew ? 202 : 200, { ok: true, data });
  if (isNew) console.log(`my turn: ${message}`); // A real agent calls its model here.
});
server.listen(Number(process.env.PORT), '127.0.0.1');
