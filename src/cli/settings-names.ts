/** Which names `config.yaml` may hold: those that some part reads, and the name that was probably meant by another. */
import { CHRONOS_VARIABLES } from '../chronos/config.ts';
import { MCP_VARIABLES } from '../chronos-mcp/mcp-settings.ts';
import { NEO_VARIABLES } from '../neo/config.ts';
import { TOOL_VARIABLES } from '../neo/tools/settings.ts';
import { ROUTER_VARIABLES } from '../router/config.ts';

/** Read by the command line itself, for every part. */
const COMMON = ['REVEILLE_HOME', 'REVEILLE_LOG'];

/** Named by the contracts (§11) for parts that are not here yet: a file that serves those as well must not stop these. */
const RESERVED = [
  ...['HOST', 'PORT', 'DATA_DIR', 'TOKEN', 'MANIFEST', 'POLICY', 'DEV'].map((name) => `EXECUTOR_${name}`),
  ...['MODEL', 'CHEAP_MODEL', 'MODEL_BASE_URL', 'MODEL_API_KEY', 'EMBED_MODEL'].map((name) => `EXECUTOR_${name}`),
  'FLY_API_TOKEN',
  'FLY_API_BASE_URL',
  'DOCKER_HOST',
];

const KNOWN: ReadonlySet<string> = new Set([
  ...CHRONOS_VARIABLES,
  ...ROUTER_VARIABLES,
  ...NEO_VARIABLES,
  ...TOOL_VARIABLES,
  ...MCP_VARIABLES,
  ...COMMON,
  ...RESERVED,
]);

/** How many letters may be wrong in a name for another to be suggested. */
const CLOSE = 3;

/** How many letters must be put in, taken out, changed or swapped with their neighbour to make one text the other. */
function editDistance(one: string, other: string): number {
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const change = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swap = swapped ? before[j - 2]! + 1 : change;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, change, swap));
    }
    before = row;
    row = next;
  }
  return row[other.length]!;
}

export const isKnownName = (name: string): boolean => KNOWN.has(name);

/** The known name that resembles this one most, if one does. */
export function nearestName(name: string): string | undefined {
  const written = name.toUpperCase();
  const [nearest] = [...KNOWN]
    .filter((known) => Math.abs(known.length - written.length) <= CLOSE)
    .map((known) => ({ known, distance: editDistance(written, known) }))
    .sort((one, other) => one.distance - other.distance);
  return nearest !== undefined && nearest.distance <= CLOSE && nearest.distance < written.length / 2
    ? nearest.known
    : undefined;
}
