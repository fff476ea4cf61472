/**
 * The pages of `alarm_set` with `help`: the fields of an alarm that are not in the tool's schema, with an example each. A
 * model reads a page when it needs one, so that no prompt carries all of them.
 */
import { isForClients, type OwnerField } from '../wire/alarm-fields.ts';

export const HELP_TOPICS = ['conditions', 'events', 'chains', 'series', 'policies', 'turn'] as const;
export type HelpTopic = (typeof HELP_TOPICS)[number];

type Explained = { readonly about: string; readonly example: unknown };
type Page = {
  readonly about: string;
  readonly fields: Readonly<Partial<Record<OwnerField | 'dry_run', Explained>>>;
  /** Whole calls of `alarm_set`. */
  readonly calls: readonly Readonly<Record<string, unknown>>[];
};

const PAGES = {
  conditions: {
    about: 'At each fire a check decides, without a model, whether it wakes you. A skipped fire starts no turn.',
    fields: {
      check: {
        about:
          'Exactly one of http, command, path. http: {url, headers?, status?} and, for a change since the last wake, etag "changed"; or pointer (a JSON Pointer into the body) with equals or changed true. command: {argv, timeout_seconds?, network?, env?} in a sandbox on your machine, if the user allows commands: exit 0 wakes, 1 skips. path: {path} wakes when the file or folder changed. Beside it: on_error "wake" (default) or "skip", max_skips, wake_at_least_every (ISO 8601 duration).',
        example: { http: { url: 'https://example.com/status.json', pointer: '/state', equals: 'down' } },
      },
    },
    calls: [
      {
        wake_message: 'The release page has changed. Read it and list what is new.',
        when: 'every hour',
        more: { check: { http: { url: 'https://example.com/releases', etag: 'changed' } } },
      },
      {
        wake_message: 'The tests fail. Find out why.',
        when: 'every day at 7:00',
        more: { check: { command: { argv: ['sh', '-c', '! npm test'], timeout_seconds: 300 } } },
      },
    ],
  },
  events: {
    about: 'An alarm can wait for an event in place of a time: omit when.',
    fields: {
      event: {
        about:
          'source "webhook": the answer has an address to call; verify is standard (default), github or path. source "file": path. source "process": pid, fires when it ends. source "mcp": server, name, arguments?: an event of one of your MCP servers. All may have filter {pointer, equals?}, quiet_for, at_most_every, deadline (ISO 8601 durations), batch_up_to, and repeat "once" (default) or "always".',
        example: { source: 'webhook', verify: 'github', filter: { pointer: '/body/action', equals: 'opened' } },
      },
      expect: {
        about:
          'Wakes you when nothing came in time: every and grace? are ISO 8601 durations. Beside event or after it expects those; alone, a call of the address in the answer.',
        example: { every: 'P1D', grace: 'PT1H' },
      },
    },
    calls: [
      {
        wake_message: 'New files are in the inbox. Sort them.',
        more: { event: { source: 'file', path: '/home/me/inbox', quiet_for: 'PT30S', repeat: 'always' } },
      },
      {
        wake_message: 'The backup did not report. Look why.',
        label: 'backup',
        more: { expect: { every: 'P1D', grace: 'PT2H' } },
      },
    ],
  },
  chains: {
    about: 'An alarm can follow the turn of another alarm of yours: omit when.',
    fields: {
      after: {
        about:
          'alarm: the id of the other one. on: "finished" (default), "failed", "missed" or "any". delay_seconds? counts from there.',
        example: { alarm: '01a206a3-09b9-75e1-9cfa-bb6341bc3a57', on: 'failed' },
      },
    },
    calls: [
      {
        wake_message: 'The nightly build has failed. Find the cause.',
        more: { after: { alarm: '01a206a3-09b9-75e1-9cfa-bb6341bc3a57', on: 'failed' } },
      },
    ],
  },
  series: {
    about:
      'A series repeats: when in words, cron_expr, or rrule for what these cannot say. It may end or leave days out.',
    fields: {
      rrule: {
        about: 'Lines of RFC 5545 (RRULE, DTSTART, RDATE, EXDATE) in timezone; kind is "rrule".',
        example: 'RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=16;BYMINUTE=0;BYSECOND=0',
      },
      ends_at: { about: 'No fire after this RFC 3339 instant.', example: '2099-12-31T18:00:00+01:00' },
      max_fires: { about: 'Ends after so many fires.', example: 10 },
      holidays: { about: 'No fires on the days of this installed calendar.', example: 'de-berlin' },
      catch_up: {
        about: 'Which overdue fires happen after downtime: latest (default), all or none.',
        example: 'none',
      },
      catch_up_window_seconds: { about: 'Fires that are overdue by more are missed.', example: 3600 },
      jitter_seconds: { about: 'Fires up to so much later, to spread load. At most 3600.', example: 60 },
    },
    calls: [
      {
        wake_message: 'Write the weekly report.',
        when: 'every friday at 16:00',
        more: { ends_at: '2099-12-31T18:00:00+01:00' },
      },
      {
        wake_message: 'Close the month.',
        kind: 'rrule',
        more: { rrule: 'RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=16;BYMINUTE=0;BYSECOND=0' },
      },
    ],
  },
  policies: {
    about: 'What happens when something goes wrong or comes late.',
    fields: {
      overlap: {
        about:
          'While a turn of the series still runs, the next fire starts another (allow, default), is dropped (skip), or waits (buffer_all; buffer_one: only the latest).',
        example: 'skip',
      },
      pause_on_failure: { about: 'A series pauses when a delivery is given up or its turn fails.', example: true },
      max_failures: {
        about: 'A fire is given up after so many failed deliveries. Default 100, about a day.',
        example: 5,
      },
      max_lateness_seconds: { about: 'A fire that is later is missed. Default: however late.', example: 900 },
      urgent: {
        about: 'Fires in quiet hours of the user, too. Only if waiting until morning would do harm.',
        example: true,
      },
      wake_computer: { about: "Wakes the user's computer from sleep, where that is set up.", example: true },
      dry_run: { about: 'Sets nothing, and answers when a new alarm would fire.', example: true },
    },
    calls: [
      {
        wake_message: 'Check the queue.',
        when: 'every 15 minutes',
        more: { overlap: 'skip', pause_on_failure: true, max_lateness_seconds: 600 },
      },
    ],
  },
  turn: {
    about: 'What the turn has and may do. These fields are for agents of the user, not for remote clients.',
    fields: {
      model: { about: 'The model of the turn, if it is not your default.', example: 'claude-haiku-4-5' },
      tools: {
        about: 'The only tools of the turn. Omit it for all; ["none"] is a turn without tools.',
        example: ['fetch'],
      },
      deliver: {
        about:
          'Channels of the user that also get the result. A turn that answers exactly NOTHING_TO_REPORT sends no notification.',
        example: ['mail'],
      },
      run: {
        about:
          'A command in place of the turn, if the user allows commands; its output is the result. timeout_seconds? is 300 by default.',
        example: { argv: ['./backup.sh', '--quick'] },
      },
    },
    calls: [
      { wake_message: 'Nightly backup', when: 'every day at 2:00', more: { run: { argv: ['./backup.sh'] } } },
      {
        wake_message: 'Read my mail and list what needs an answer today.',
        when: 'every weekday at 8:00',
        more: { model: 'claude-haiku-4-5', deliver: ['mail'] },
      },
    ],
  },
} as const satisfies Readonly<Record<HelpTopic, Page>>;

const pageOf = (topic: HelpTopic): Page => PAGES[topic];

/** A right value of each field that a page explains. */
export const EXAMPLES: Readonly<Record<string, unknown>> = Object.fromEntries(
  HELP_TOPICS.flatMap((topic) => Object.entries(pageOf(topic).fields).map(([name, { example }]) => [name, example])),
);

/** The answer to `help`. */
export type HelpPage = { help: HelpTopic } & Pick<Page, 'about' | 'calls'> & {
    fields: Record<string, { about: string; more: Record<string, unknown> }>;
  };

/**
 * A page, whose examples can be copied into `more`.
 *
 * @param isRemote the reader is a program with an access token, which may not set every field
 */
export function helpPage(topic: HelpTopic, isRemote: boolean): HelpPage {
  const { about, fields, calls } = pageOf(topic);
  const isFor = (name: string) => !isRemote || name === 'dry_run' || isForClients(name as OwnerField);
  const shown = Object.entries(fields).filter(([name]) => isFor(name));
  return {
    help: topic,
    about,
    fields: Object.fromEntries(shown.map(([name, { about, example }]) => [name, { about, more: { [name]: example } }])),
    calls: calls.filter(({ more = {} }) => Object.keys(more as object).every(isFor)),
  };
}
