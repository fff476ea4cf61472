/**
 * Tasks in the words of a person, completed by a model that knows only the tools of its requests (`mind.ts`): `reveille
 * up`, Neo with its bundled servers, and an endpoint with OpenAI's chat completions. The state of chronosd decides.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type { ChronosClient } from '../../../src/chronos/client.ts';
import { localClients } from '../../../src/exports/client.ts';
import type { EndpointBody } from '../../../src/kit/model/testing/model-endpoint.ts';
import type { AlarmView } from '../../../src/wire/alarm.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { type Installation, startInstallation } from '../console/bench.ts';
import { type Args, mind, type Slip, type Step, turnOf } from './mind.ts';

/** Of the child processes (`command-line.ts`). */
const ZONE = 'Europe/Berlin';
/** A year to come. */
const YEAR = new Date().getFullYear() + 1;
/** The bound of an answer of `alarm_list` without `full`. */
const ANSWER_TOKENS = 4000;

type Outcome = {
  readonly client: ChronosClient;
  /** The alarm with the message of the task. */
  readonly alarm: AlarmView;
  /** The alarms with that message. */
  readonly alarms: readonly AlarmView[];
  readonly reply: string;
  readonly steps: readonly Step[];
  /** An alarm of an earlier task. */
  labelled(label: string): Promise<AlarmView>;
};

type Task = {
  readonly title: string;
  /** `{label}` is the start of the id of the alarm with that label. */
  readonly said: string;
  /** The largest number of calls. */
  readonly calls: number;
  /** The mistake of the model's first try. */
  readonly slip?: Slip;
  /** The person says it once more in the same conversation. */
  readonly twice?: true;
  holds(outcome: Outcome): void | Promise<void>;
};

const inMore = (change: (more: Args) => Args): Slip => {
  return ({ more, ...rest }) => ({ ...rest, more: JSON.stringify(change(JSON.parse(more as string))) });
};

const local = (instant: string | undefined, timeZone = ZONE) =>
  new Date(instant!).toLocaleString('sv-SE', { timeZone }).slice(11, 16);
const secondsAhead = ({ next_fire_at: next, created_at: created }: AlarmView) =>
  Math.round((Date.parse(next!) - Date.parse(created)) / 1000);

const errorsOf = (steps: readonly Step[]) =>
  steps.flatMap(({ result: { code, message } }) => (code ? [String(message)] : []));

/** A series with a label, which later tasks change. */
const series = (label: string, message: string): Task => ({
  title: `series with a label: ${label}`,
  said: `Wake me every day at 7:00: "${message}" Call it ${label}.`,
  calls: 1,
  holds: ({ alarm }) => assert.deepEqual([alarm.label, alarm.cron_expr], [label, '0 7 * * *']),
});

const TASKS: readonly Task[] = [
  {
    title: 'once, in words',
    said: 'Wake me tomorrow at 9am: "Read the report."',
    calls: 1,
    holds: ({ alarm }) =>
      assert.deepEqual([alarm.kind, alarm.timezone, local(alarm.next_fire_at)], ['once', ZONE, '09:00']),
  },
  {
    title: 'once, after seconds',
    said: 'Wake me after exactly 6000 seconds: "Take the bread out."',
    calls: 1,
    holds: ({ alarm }) => assert.deepEqual([alarm.kind, secondsAhead(alarm)], ['once', 6000]),
  },
  {
    title: 'once, at an instant',
    said: `Wake me exactly at ${YEAR}-03-01T08:00:00+01:00: "File the taxes."`,
    calls: 1,
    holds: ({ alarm }) => assert.equal(alarm.next_fire_at, `${YEAR}-03-01T07:00:00.000Z`),
  },
  {
    title: 'payload',
    said: 'Wake me in 3 hours: "Pay the invoice." with the data {"invoice": 12345678901234567890}',
    calls: 1,
    holds: ({ alarm }) => assert.equal(alarm.payload?.text, '{"invoice": 12345678901234567890}'),
  },
  {
    title: 'label',
    said: 'Wake me tomorrow at 10: "Plan the week." Call it planning.',
    calls: 1,
    holds: ({ alarm }) => assert.equal(alarm.label, 'planning'),
  },
  {
    title: 'another zone',
    said: 'Wake me tomorrow at 9am in Asia/Tokyo: "Call Kenji."',
    calls: 1,
    holds: ({ alarm }) =>
      assert.deepEqual([alarm.timezone, local(alarm.next_fire_at, 'Asia/Tokyo')], ['Asia/Tokyo', '09:00']),
  },
  {
    title: 'the same key twice',
    said: 'Wake me every day at 6:00: "Pay the rent." Use the key rent-may.',
    calls: 1,
    twice: true,
    holds({ alarms, steps }) {
      assert.equal(alarms.length, 1);
      assert.equal(steps[0]!.result.deduped, true);
    },
  },
  series('report', 'Write the report.'),
  series('mail', 'Read my mail.'),
  series('gamma', 'Watch the gamma rays.'),
  {
    title: 'weekdays',
    said: 'Wake me every weekday at 9: "Open the shop."',
    calls: 1,
    holds: ({ alarm }) => assert.deepEqual([alarm.kind, alarm.cron_expr], ['cron', '0 9 * * 1-5']),
  },
  {
    title: 'mistake: an hour of two halves of the day',
    said: 'Wake me every weekday at 8: "Open the market."',
    calls: 2,
    holds: ({ alarm }) => assert.equal(alarm.cron_expr, '0 8 * * 1-5'),
  },
  {
    title: 'cron expression',
    said: 'Wake me on the cron schedule 30 6 * * 0: "Water the plants."',
    calls: 1,
    holds: ({ alarm }) => assert.deepEqual([alarm.cron_expr, alarm.timezone], ['30 6 * * 0', ZONE]),
  },
  {
    title: 'recurrence rule',
    said: 'Wake me by the rule FREQ=MONTHLY;BYDAY=1MO;BYHOUR=15;BYMINUTE=0;BYSECOND=0: "Close the month."',
    calls: 2,
    holds({ alarm }) {
      assert.equal(alarm.rrule, 'RRULE:FREQ=MONTHLY;BYDAY=1MO;BYHOUR=15;BYMINUTE=0;BYSECOND=0');
      assert.deepEqual([alarm.kind, local(alarm.next_fire_at)], ['rrule', '15:00']);
    },
  },
  {
    title: 'series with an end',
    said: `Wake me every friday at 16: "Write the weekly letter." until ${YEAR}-12-31T18:00:00+02:00.`,
    calls: 2,
    holds: ({ alarm }) => assert.equal(alarm.ends_at, `${YEAR}-12-31T16:00:00.000Z`),
  },
  {
    title: 'series with a number of fires',
    said: 'Wake me every day at 7:00: "Take the pill." 10 times in all.',
    calls: 1,
    holds: ({ alarm }) => assert.equal(alarm.max_fires, 10),
  },
  {
    title: 'holidays of a calendar that is not installed: refused',
    said: 'Wake me every weekday at 8:00: "Open the office." Not on the days of the calendar de-berlin.',
    calls: 2,
    holds({ alarms, reply }) {
      assert.deepEqual(alarms, []);
      assert.match(reply, /holidays must name an installed calendar .* none is installed/);
    },
  },
  {
    title: 'limit of lateness',
    said: 'Wake me every day at 6:00: "Start the oven." Not if it is more than 900 seconds late.',
    calls: 2,
    holds: ({ alarm }) => assert.equal(alarm.max_lateness_seconds, 900),
  },
  {
    title: 'overlap',
    said: 'Wake me every 15 minutes: "Check the queue." Not while an earlier one runs.',
    calls: 2,
    holds: ({ alarm }) => assert.equal(alarm.overlap, 'skip'),
  },
  {
    title: 'edit: time',
    said: 'Move the alarm called planning to friday at 11.',
    calls: 2,
    async holds({ labelled }) {
      const { next_fire_at: next } = await labelled('planning');
      assert.equal(new Date(next!).toLocaleString('en', { timeZone: ZONE, weekday: 'short' }), 'Fri');
      assert.equal(local(next), '11:00');
    },
  },
  {
    title: 'edit: message, by the start of the id',
    said: 'Give the alarm {report} the message: "Write the long report."',
    calls: 1,
    holds: ({ alarm }) => assert.deepEqual([alarm.label, alarm.cron_expr], ['report', '0 7 * * *']),
  },
  {
    title: 'edit: label',
    said: 'Rename the alarm called report to annual-report.',
    calls: 2,
    holds: async ({ labelled }) =>
      assert.equal((await labelled('annual-report')).wake_message, 'Write the long report.'),
  },
  {
    title: 'clear',
    said: 'Remove the label of the alarm called annual-report.',
    calls: 2,
    async holds({ client }) {
      const { alarms } = await client.listAlarms({ text: 'Write the long report.' });
      assert.deepEqual(
        alarms.map(({ label }) => label),
        [''],
      );
    },
  },
  {
    title: 'pause',
    said: 'Pause the alarm called mail.',
    calls: 2,
    holds: async ({ labelled }) => assert.equal((await labelled('mail')).status, 'paused'),
  },
  {
    title: 'resume',
    said: 'Resume the alarm called mail.',
    calls: 2,
    holds: async ({ labelled }) => assert.equal((await labelled('mail')).status, 'active'),
  },
  {
    title: 'trigger',
    said: 'Trigger the alarm called mail.',
    calls: 2,
    async holds({ steps, labelled }) {
      const { id, status } = await labelled('mail');
      assert.match(String(steps.at(-1)!.result.fire_id), new RegExp(`^${id}@`));
      assert.equal(status, 'active');
    },
  },
  {
    title: 'cancel by the start of the id',
    said: 'Cancel the alarm {planning}.',
    calls: 1,
    holds: async ({ labelled }) => assert.equal((await labelled('planning')).status, 'cancelled'),
  },
  {
    title: 'cancel by the label',
    said: 'Cancel the alarm called mail.',
    calls: 2,
    holds: async ({ labelled }) => assert.equal((await labelled('mail')).status, 'cancelled'),
  },
  {
    title: 'cancel by a start that several ids have',
    said: 'Cancel the alarm 01a2, the one called gamma.',
    calls: 3,
    async holds({ steps, labelled }) {
      assert.equal(errorsOf(steps).length, 1);
      assert.equal((await labelled('gamma')).status, 'cancelled');
    },
  },
  {
    title: 'find an alarm among 200, page by page',
    said: 'Page through my alarms until you find the one called alarm-173.',
    calls: 12,
    async holds({ reply, steps, labelled }) {
      assert.equal(JSON.parse(reply).id, (await labelled('alarm-173')).id);
      assert.ok(steps.length > 5, 'it is on a late page');
      const ids = steps.flatMap(({ result }) => (result.alarms as AlarmView[]).map(({ id }) => id));
      assert.equal(new Set(ids).size, ids.length, 'no page repeats an alarm');
    },
  },
  {
    title: 'list by a text',
    said: 'Which alarms mention "heron 7"?',
    calls: 1,
    holds({ reply }) {
      const labels = (JSON.parse(reply).alarms as AlarmView[]).map(({ label }) => label);
      assert.deepEqual(
        labels.toSorted(),
        [7, ...Array.from({ length: 10 }, (_, n) => 70 + n)].map((n) => `alarm-${n}`),
      );
    },
  },
  {
    title: 'one alarm, whole',
    said: 'Show the alarm {alarm-173}.',
    calls: 1,
    holds: ({ reply }) => assert.equal(JSON.parse(reply).alarms[0].wake_message, 'Look at heron 173.'),
  },
  {
    title: 'check before each wake',
    said: 'Wake me every 15 minutes, only if "/state" of https://example.com/health.json is down: "Look at the service."',
    calls: 2,
    holds: ({ alarm }) =>
      assert.deepEqual(alarm.check?.http, {
        url: 'https://example.com/health.json',
        pointer: '/state',
        equals: 'down',
      }),
  },
  {
    title: 'event: webhook',
    said: 'Wake me at each webhook of github with /body/action "closed": "File the issue."',
    calls: 2,
    holds({ alarm, reply }) {
      const { source, filter, repeat } = alarm.event as Args;
      assert.deepEqual([source, filter, repeat], ['webhook', { pointer: '/body/action', equals: 'closed' }, 'always']);
      assert.ok(JSON.parse(reply).hook.address);
    },
  },
  {
    title: 'absence of a report',
    said: 'Wake me if no report comes for P2D: "The backup did not report."',
    calls: 2,
    holds: ({ alarm }) => assert.equal((alarm.expect as Args).every, 'P2D'),
  },
  {
    title: 'chain',
    said: 'Wake me after the alarm called alarm-12 failed: "Find the cause."',
    calls: 3,
    async holds({ alarm, labelled }) {
      const { alarm: followed, on } = alarm.after as Args;
      assert.deepEqual([followed, on], [(await labelled('alarm-12')).id, 'failed']);
    },
  },
  {
    title: 'command: refused for an agent',
    said: 'Run ./backup.sh every day at 2:00 in place of a turn: "Nightly backup."',
    calls: 2,
    holds({ alarms, reply }) {
      assert.deepEqual(alarms, []);
      assert.match(reply, /may not set commands; let the person set it/);
    },
  },
  {
    title: 'dry run',
    said: 'When would every other monday at 10 fire? Set nothing.',
    calls: 2,
    async holds({ client, reply }) {
      const { reading, occurrences } = JSON.parse(reply);
      assert.match(reading.text, /every 2 weeks|other/);
      assert.equal(occurrences.length, 5);
      assert.deepEqual((await client.listAlarms({ kind: 'rrule', text: 'every other monday' })).alarms, []);
    },
  },
  {
    title: 'turn without tools',
    said: 'Wake me every day at 8:00 without tools: "Say good morning."',
    calls: 2,
    holds: ({ alarm }) => assert.deepEqual(alarm.tools, []),
  },
  {
    title: 'mistake: an empty list of tools',
    said: 'Wake me every day at 8:00 without tools: "Say good evening."',
    calls: 3,
    slip: inMore((more) => ({ ...more, tools: [] })),
    holds: ({ alarm }) => assert.deepEqual(alarm.tools, []),
  },
  {
    title: 'mistake: the text "null" as a conversation',
    said: 'Wake me in 2 hours: "Stretch."',
    calls: 2,
    slip: (args) => ({ ...args, conversation_id: 'null' }),
    holds: ({ alarm }) => assert.match(alarm.conversation_id!, /^[0-9a-f-]{36}$/),
  },
  {
    title: 'mistake: words for a number',
    said: 'Wake me after exactly 600 seconds: "Turn the roast."',
    calls: 2,
    slip: (args) => ({ ...args, delay_seconds: 'ten minutes' }),
    holds: ({ alarm }) => assert.equal(secondsAhead(alarm), 600),
  },
  {
    title: 'mistake: words for a number in more',
    said: 'Wake me every day at 5:00: "Feed the cat." 5 times in all.',
    calls: 2,
    slip: inMore(() => ({ max_fires: 'five' })),
    holds: ({ alarm }) => assert.equal(alarm.max_fires, 5),
  },
  {
    title: 'mistake: a wrong member in more',
    said: 'Wake me every 15 minutes, only if "/load" of https://example.com/load.json is high: "Look at the load."',
    calls: 3,
    slip: inMore(() => ({ check: { http: { uri: 'https://example.com/load.json', json_path: '/load' } } })),
    holds: ({ alarm }) =>
      assert.deepEqual(alarm.check?.http, { url: 'https://example.com/load.json', pointer: '/load', equals: 'high' }),
  },
  {
    title: 'mistake: a misspelt field',
    said: 'Wake me in 4 hours: "Close the window." Call it window.',
    calls: 2,
    slip: ({ label, ...args }) => ({ ...args, lable: label }),
    holds: ({ alarm }) => assert.equal(alarm.label, 'window'),
  },
  {
    title: 'mistake: a misspelt field in more',
    said: 'Wake me every day at 4:00: "Feed the dog." 4 times in all.',
    calls: 2,
    slip: inMore(({ max_fires }) => ({ max_fire: max_fires })),
    holds: ({ alarm }) => assert.equal(alarm.max_fires, 4),
  },
  {
    title: 'mistake: a misspelt alarm_id',
    said: 'Give the alarm {alarm-20} the message: "Look at crane 20."',
    calls: 2,
    slip: ({ alarm_id, ...args }) => ({ ...args, alarm: alarm_id }),
    holds: ({ alarm }) => assert.equal(alarm.label, 'alarm-20'),
  },
  {
    title: 'mistake: two times, of which each error names one',
    said: 'Wake me in 5 hours: "Open the window."',
    calls: 3,
    slip: (args) => ({ ...args, kind: 'once', delay_seconds: 18_000 }),
    holds: ({ alarm }) => assert.equal(secondsAhead(alarm), 18_000),
  },
  {
    title: 'more as an object',
    said: 'Wake me at each webhook of github with /body/action "opened": "Triage it."',
    calls: 2,
    slip: ({ more, ...args }) => ({ ...args, more: JSON.parse(more as string) }),
    holds: ({ alarm }) => assert.deepEqual((alarm.event as Args).filter, { pointer: '/body/action', equals: 'opened' }),
  },
  {
    title: 'every page, with alarms that have no time',
    said: 'Page through my alarms until you find the one called no-such-alarm.',
    calls: 15,
    async holds({ client, steps }) {
      const ids = steps.flatMap(({ result }) => (result.alarms as AlarmView[]).map(({ id }) => id));
      const { alarms } = await client.listAlarms({ status: 'active', limit: 500 });
      assert.ok(alarms.some(({ next_fire_at: next }) => next === undefined));
      assert.deepEqual(ids.toSorted(), alarms.map(({ id }) => id).sort(), 'each active alarm once');
    },
  },
];

describe('tasks of a person, by a model that knows only the schemas it is sent', () => {
  const owner = sharedOwner();
  const slips = new Map<string, Slip>();
  const bodies: EndpointBody[] = [];
  const play = mind((said) => slips.get(said));
  let installation: Installation;
  let client: ChronosClient;

  before(async () => {
    installation = await startInstallation(owner, (response, request) => {
      bodies.push(request.body);
      return play(response, request);
    });
    client = (await localClients({ REVEILLE_HOME: installation.home })).chronos;
    for (let n = 0; n < 200; n++)
      await client.createAlarm({
        ...{ label: `alarm-${n}`, wake_message: `Look at heron ${n}.`, kind: 'once' },
        delay_seconds: 30 * 24 * 3600 + n * 60,
      });
  });
  after(() => owner.end());

  const labelled = async (label: string) => {
    const { alarms } = await client.listAlarms({ text: label, limit: 500 });
    const alarm = alarms.find((one) => one.label === label);
    assert.ok(alarm, `no alarm is called ${label}`);
    return alarm;
  };

  /** The text of a task with the ids of the alarms that it names. */
  const withIds = async (said: string) => {
    const [name, label] = /\{([\w-]+)\}/.exec(said) ?? [];
    return label === undefined ? said : said.replace(name!, (await labelled(label)).id.slice(0, 18));
  };

  for (const { title, said: template, calls, slip, twice, holds } of TASKS)
    test(title, async (t) => {
      const said = await withIds(template);
      if (slip) slips.set(said, slip);
      const chat = async (...flags: string[]) =>
        JSON.parse(await installation.reveille('chat', '--json', ...flags, said)) as {
          conversation_id: string;
          reply: string;
        };
      const first = await chat();
      const { reply } = twice ? await chat('--conversation', first.conversation_id) : first;
      const turns = bodies.map(({ messages }) => turnOf(messages)).filter((turn) => turn.said === said);
      const { steps } = turns.at(-1)!;
      t.diagnostic(`${String(steps.length).padStart(2)} of at most ${calls}  ${said}`);
      for (const { args } of steps) t.diagnostic(`      ${JSON.stringify(args)}`);
      assert.ok(steps.length <= calls, `${steps.length} calls: ${JSON.stringify(steps)}`);
      for (const { text } of steps) assert.ok(countTokens(text) < ANSWER_TOKENS, text);
      assert.equal(errorsOf(steps).length > 0, /mistake|refused|several/.test(title), errorsOf(steps).join());
      const [, message = ''] = /: "([^"]+)"/.exec(said) ?? [];
      const found = message === '' ? [] : (await client.listAlarms({ text: message, limit: 500 })).alarms;
      const alarms = found.filter(({ wake_message }) => wake_message === message);
      await holds({ client, alarm: alarms[0]!, alarms, reply, steps, labelled });
    });
});
