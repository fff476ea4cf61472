/** What the Fly Machines API says of a machine, and what its states mean here; pure. */
import { z } from 'zod';

const exitEvent = z.object({
  exit_code: z.number().nullish(),
  guest_exit_code: z.number().nullish(),
  oom_killed: z.boolean().nullish(),
  error: z.string().nullish(),
});

/** The members that matter here of `GET /v1/apps/{app}/machines/{id}`. */
export const flyMachineSchema = z.object({
  state: z.string(),
  private_ip: z.string().nullish(),
  events: z
    .array(
      z.object({
        type: z.string().nullish(),
        timestamp: z.number().nullish(),
        request: z.object({ exit_event: exitEvent.nullish() }).nullish(),
      }),
    )
    .nullish(),
});
export type FlyMachineView = z.output<typeof flyMachineSchema>;

/** A machine's state in terms of what to do about it; see `Sight`. */
export type FlyStanding = 'up' | 'rising' | 'down' | 'changing' | 'lost';

const STANDINGS: Readonly<Record<string, FlyStanding>> = {
  started: 'up',
  starting: 'rising',
  restarting: 'rising',
  // A machine whose image is still being prepared is `created`, too; it refuses to start until that is done.
  created: 'down',
  stopped: 'down',
  suspended: 'down',
  // It could not start the last time; the next may go better.
  failed: 'down',
  creating: 'changing',
  stopping: 'changing',
  suspending: 'changing',
  updating: 'changing',
  replacing: 'changing',
  destroying: 'lost',
  destroyed: 'lost',
  launch_failed: 'lost',
  replaced: 'lost',
  migrated: 'lost',
};

/** A state that Fly did not have when this was written is looked at again. */
export function standingOf(state: string): FlyStanding {
  return Object.hasOwn(STANDINGS, state) ? STANDINGS[state]! : 'changing';
}

/** How the machine's program ended the last time, to follow its state; nothing where Fly does not say. */
export function endingOf({ events }: FlyMachineView): string {
  const exits = (events ?? []).filter(({ request }) => request?.exit_event);
  const latest = exits.toSorted((one, other) => (other.timestamp ?? 0) - (one.timestamp ?? 0))[0]?.request?.exit_event;
  if (!latest) return '';
  const { exit_code, guest_exit_code, oom_killed, error } = latest;
  const code = guest_exit_code || exit_code;
  const parts = [
    code === null || code === undefined ? undefined : `its program exited with code ${code}`,
    oom_killed ? 'out of memory' : undefined,
    error || undefined,
  ].filter((part) => part !== undefined);
  return parts.length > 0 ? `; ${parts.join(', ')}` : '';
}
