/** Saying what is there in the place of a tool that is not. Pure. */
import { editDistance } from '../../wire/edit-distance.ts';

const MOST_NAMES = 20;

const toolOf = (name: string) => name.slice(name.indexOf('/') + 1).toLowerCase();

/** Names that somebody may have meant, the nearest first. */
function nearNames(name: string, there: readonly string[]): string[] {
  const wanted = toolOf(name.slice(0, 200));
  const far = Math.max(2, Math.floor(wanted.length / 3));
  return there
    .map((one) => ({ one, steps: editDistance(wanted, toolOf(one)) }))
    .filter(({ one, steps }) => steps <= far || toolOf(one).includes(wanted) || wanted.includes(toolOf(one)))
    .sort((a, b) => a.steps - b.steps || (a.one < b.one ? -1 : 1))
    .map(({ one }) => one)
    .slice(0, 3);
}

/** The sentence. @param problem what is wrong with its server, in words that follow the server's name */
export function absenceWords(name: string, there: readonly string[], problem: string | undefined): string {
  const quoted = JSON.stringify(name.slice(0, 200));
  if (problem !== undefined) return `${quoted} is not available: ${problem}`;
  const near = nearNames(name, there);
  if (there.length === 0) return `there is no tool ${quoted}, and no other tool either`;
  const names = there.slice(0, MOST_NAMES).join(', ');
  const more = there.length > MOST_NAMES ? ` and ${there.length - MOST_NAMES} more` : '';
  const meant = near.length > 0 ? ` (did you mean ${near.join(' or ')}?)` : '';
  return `there is no tool ${quoted}${meant}; the tools are ${names}${more}`;
}
