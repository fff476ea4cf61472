/** A conversation with the person's own daemon, as far as a page shows it. */
import type { NeoClient } from '../neo/client.ts';
import type { TurnView } from '../wire/turn.ts';

const PAGE = 100;
/** So many are kept while the end of a conversation is looked for. */
const MOST = 200;

/** The last turns of a conversation, in the order in which they were accepted; how many there are in all. */
export async function lastTurns(agent: NeoClient, id: string): Promise<{ turns: TurnView[]; count: number }> {
  const turns: TurnView[] = [];
  let cursor: string | undefined;
  let count = 0;
  do {
    const page = await agent.conversation(id, { limit: PAGE, cursor });
    turns.push(...page.turns);
    count = page.turn_count;
    cursor = page.next_cursor;
    if (turns.length > MOST) turns.splice(0, turns.length - PAGE);
  } while (cursor !== undefined);
  return { turns, count };
}
