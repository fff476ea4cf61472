/** Writes the turns of the users' Neos into the receiver's log. */
import { elementsOf, sliceAt } from '../../../src/wire/json.ts';
import { turnViewSchema } from '../../../src/wire/turn.ts';
import type { Cluster } from '../../support/cluster/cluster.ts';
import type { NeoGet } from '../../support/cluster/neo-reader.ts';
import type { NeoUser } from '../../support/cluster/user.ts';
import { eventually } from '../../support/eventually.ts';
import type { ReceiverRecorder } from '../checker/journal.ts';

const TURNS_END_MS = 60_000;

/** All pages of a list, as the source texts of its elements. */
async function allOf(get: NeoGet, path: string, member: string): Promise<string[]> {
  const found: string[] = [];
  for (let cursor = ''; ; ) {
    const text = await get(`${path}?limit=100${cursor}`);
    found.push(...(elementsOf(sliceAt(text, [member]) ?? '[]') ?? []));
    const next = sliceAt(text, ['next_cursor']);
    if (next === undefined) return found;
    cursor = `&cursor=${encodeURIComponent(JSON.parse(next))}`;
  }
}

async function turnsOf(get: NeoGet): Promise<string[]> {
  const conversations = await allOf(get, '/conversations', 'conversations');
  const turns: string[] = [];
  for (const conversation of conversations)
    turns.push(...(await allOf(get, `/conversations/${JSON.parse(sliceAt(conversation, ['id'])!)}`, 'turns')));
  return turns;
}

/**
 * Reads a Neo's turns when all have ended, and logs each of them with its wake. Neo does not list repeated wakes, so
 * the log has none.
 *
 * @returns sentences about turns that did not end well
 */
export function journalNeo(installation: Cluster, user: NeoUser, log: ReceiverRecorder): Promise<string[]> {
  return installation.readNeo(user, async (get) => {
    const violations: string[] = [];
    let turns: string[] = [];
    const haveEnded = async () => {
      turns = await turnsOf(get);
      return turns.every((turn) => !/^"(queued|running)"$/.test(sliceAt(turn, ['status'])!));
    };
    await eventually(`the turns of ${user.label} have ended`, haveEnded, TURNS_END_MS).catch((error: Error) =>
      violations.push(error.message),
    );
    for (const text of turns) {
      const turn = turnViewSchema.parse(JSON.parse(text));
      const arrival = {
        fireId: turn.fire_id ?? '',
        user: user.label,
        conversation: turn.conversation_id,
        message: turn.message,
        payload: sliceAt(text, ['payload']) ?? null,
      };
      const acceptedAt = Date.parse(turn.created_at);
      log.woken(arrival, acceptedAt)(202, acceptedAt);
      log.turn({ ...arrival, status: turn.status }, acceptedAt);
      if (turn.status === 'failed' || turn.status === 'interrupted')
        violations.push(`the turn of ${turn.fire_id} at ${user.label} is ${turn.status}: ${turn.error}`);
    }
    return violations;
  });
}
