/**
 * The rights of readers and editors, by field: what an edit of it decides, and what a reader other than the person sees
 * of it. A field without a row does not compile. Data only, as `alarm-fields.ts`.
 */
import type { AlarmView } from './alarm.ts';
import type { OwnerField } from './alarm-fields.ts';

/**
 * What an edit decides: when the alarm fires (`time`), what its command runs or reads (`command`), or both. After such an
 * edit by another than the person, a command of the person is no longer theirs.
 */
export type Decision = 'nothing' | 'time' | 'command' | 'both';

/**
 * - `shown`: as it is.
 * - `no_headers`: of a check, names of headers without values, and no credentials in the address.
 * - `no_query`: the same, the address without its query, and a command without its arguments.
 * - `no_secret_address`: unless it is of the reader's own making, an address that contains a secret is absent.
 * - `program`: of a command, the program without its arguments.
 * - `no_arguments`: of an event, the server without the arguments for it.
 */
export type Sight = 'shown' | 'no_headers' | 'no_query' | 'no_secret_address' | 'program' | 'no_arguments';

/** Besides the person, who sees all: the agent, and a client with an access token. */
export type Reader = 'person' | 'agent' | 'client';

type Sights = { readonly agent: Sight; readonly client: Sight };
type Rights<N> = N extends OwnerField ? Sights & { readonly decides: Decision } : Sights;

const SHOWN = { agent: 'shown', client: 'shown' } as const;
const NOTHING = { ...SHOWN, decides: 'nothing' } as const;
const TIME = { ...SHOWN, decides: 'time' } as const;

export const ALARM_RIGHTS: { readonly [N in keyof AlarmView | OwnerField]: Rights<N> } = {
  id: SHOWN,
  kind: NOTHING,
  label: NOTHING,
  wake_message: { ...SHOWN, decides: 'command' },
  payload: { ...SHOWN, decides: 'command' },
  conversation_id: NOTHING,
  idempotency_key: NOTHING,
  when: TIME,
  delay_seconds: TIME,
  fire_at: TIME,
  cron_expr: TIME,
  rrule: TIME,
  timezone: TIME,
  jitter_seconds: TIME,
  ends_at: TIME,
  max_fires: TIME,
  holidays: TIME,
  catch_up: TIME,
  catch_up_window_seconds: TIME,
  overlap: TIME,
  pause_on_failure: NOTHING,
  check: { agent: 'no_headers', client: 'no_query', decides: 'both' },
  event: { agent: 'shown', client: 'no_arguments', decides: 'both' },
  after: { ...SHOWN, decides: 'both' },
  expect: { ...SHOWN, decides: 'both' },
  run: { agent: 'shown', client: 'program', decides: 'command' },
  model: NOTHING,
  tools: NOTHING,
  deliver: NOTHING,
  max_failures: NOTHING,
  max_lateness_seconds: TIME,
  urgent: TIME,
  wake_computer: NOTHING,
  status: SHOWN,
  failure_count: SHOWN,
  last_error: SHOWN,
  created_at: SHOWN,
  last_fired_at: SHOWN,
  fire_count: SHOWN,
  set_by: SHOWN,
  made_by: SHOWN,
  text_by: SHOWN,
  next_fire_at: SHOWN,
  in_flight: SHOWN,
  waits_for: SHOWN,
  waiting_events: SHOWN,
  held_back: SHOWN,
  hook: { agent: 'no_secret_address', client: 'no_secret_address' },
  starts_at: SHOWN,
  holidays_missing: SHOWN,
  holidays_ended: SHOWN,
  backfill_left: SHOWN,
};

const decides = (asked: object, decision: Decision): boolean =>
  Object.entries(asked).some(([name, value]) => {
    const rights = ALARM_RIGHTS[name as OwnerField];
    return value !== undefined && (rights.decides === decision || rights.decides === 'both');
  });

/** Whether an edit decides when an alarm fires. */
export const decidesTime = (asked: object): boolean => decides(asked, 'time');
/** Whether it decides what a command of the alarm runs or reads. */
export const decidesCommand = (asked: object): boolean => decides(asked, 'command');
