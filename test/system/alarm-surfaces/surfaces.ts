/** The surfaces through which an alarm is set and changed, each as its users have it, against one `reveille up`. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { AlarmPatchBody } from '../../../src/chronos/client.ts';
import { type AlarmPreviewBody, localClients } from '../../../src/exports/client.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { readKeyFile } from '../../../src/kit/identity/keys.ts';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { challengeMessage, PRINCIPAL_HEADER } from '../../../src/wire/agent.ts';
import type { AlarmPreview } from '../../../src/wire/alarm.ts';
import { type FieldName, fieldOf, OWNER_FIELDS } from '../../../src/wire/alarm-fields.ts';
import { PROGRAM } from '../../support/cluster/processes.ts';
import { atEnd, type Owner } from '../../support/temporary.ts';
import { needs, pythonForClient } from '../../support/tools.ts';
import { startInstallation } from '../console/bench.ts';

export const ZONE = 'Europe/Berlin';
const MESSAGE = 'Look at the surfaces.';

type Fields = Partial<Record<FieldName, unknown>>;

/** A field, as a program gives it and as a person types it. */
export type Row = {
  readonly field: FieldName;
  readonly value: unknown;
  /** The value as typed; a switch has none. */
  readonly typed?: string;
  /** The flags and the controls of a field that has several. */
  readonly flags?: readonly string[];
  readonly controls?: Readonly<Record<string, string>>;
  /** The time of an alarm that gets the field. A row of a time has it in `value`. */
  readonly base: Fields;
  /** The alarm that gets the field by an edit, which keeps the kind. */
  readonly earlier?: Fields;
  /** What an alarm with the field shows; by default the field. */
  readonly shown?: Fields;
};

/** What programs send: the row's field with the other fields of its time. */
const sent = ({ field, value, base }: Row): Fields => ({ ...base, [field]: value });

/** The first fires of a preview, each as the surface shows it. */
export type Preview = { readonly fires: readonly string[] };
/** The time to backfill, as instants. */
export type Part = { readonly from: string; readonly to: string };
export type Backfilled = { readonly added: number; readonly known: number };

export type Surface = {
  /** Sets an alarm with the field of the row, and returns its id. */
  create(row: Row): Promise<string>;
  /** Sets the field in an existing alarm. */
  change(id: string, row: Row): Promise<unknown>;
  /** Removes the field from an alarm. */
  clear(id: string, field: FieldName): Promise<unknown>;
  /** When an alarm would fire that is not set. */
  preview(time: Fields): Promise<Preview>;
  /** Fires a series for a part of the past, or only counts its fires. Agents have no tool for it. */
  backfill?(id: string, part: Part, isDry: boolean): Promise<Backfilled>;
};

const shownBy = (answer: object): Preview => ({
  fires: (answer as AlarmPreview).occurrences.map(({ at }) => at),
});
const countsOf = ({ backfill }: { backfill?: unknown }): Backfilled => {
  const { added, known } = backfill as Backfilled;
  return { added, known };
};
const dryRun = (isDry: boolean) => (isDry ? { dry_run: true } : {});

export const SURFACES = ['HTTP', 'MCP tool', 'CLI', 'console form', 'TypeScript library', 'Python client'] as const;
export type SurfaceName = (typeof SURFACES)[number];

/** Why a surface cannot be tested here; `false` when it can. */
export const skipOf = (name: SurfaceName) =>
  name === 'Python client' ? needs(['python3', 'python3-cryptography']) : false;

export type Stack = {
  readonly surfaces: Readonly<Record<SurfaceName, Surface>>;
  /** An alarm as HTTP shows it. */
  read(id: string): Promise<Fields>;
  /** The alarms, over HTTP. */
  list(): Promise<{ count: number }>;
  /** Sets an alarm over HTTP. */
  set(fields: Fields): Promise<string>;
  reveille(...args: string[]): Promise<string>;
};

/** HTTP without a client library: the proof of identity, then requests. */
async function overHttp(url: string, token: string, label: string, keyFile: string) {
  const identity = agentIdentity(label, readKeyFile(keyFile));
  const call = async (method: string, path: string, body?: object, principal?: string): Promise<Fields> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(principal !== undefined && { [PRINCIPAL_HEADER]: principal }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { ok: boolean; data: Fields };
    assert.ok(answer.ok, JSON.stringify(answer));
    return answer.data;
  };
  const { did, publicKeyHex } = identity;
  const { nonce } = (await call('POST', '/v1/agent/auth/challenge', { did })) as { nonce: string };
  const signature = identity.sign(challengeMessage(did, nonce));
  const proof = { did, public_key: publicKeyHex, nonce, signature };
  const { token: principal } = (await call('POST', '/v1/agent/auth/verify', proof)) as { token: string };
  return (method: string, path: string, body?: object) => call(method, path, body, principal);
}

type Request = (method: string, path: string, body?: object) => Promise<Fields>;

function httpSurface(request: Request): Surface {
  const patch = (id: string, changes: Fields) => request('PATCH', `/v1/alarms/${id}`, changes);
  return {
    create: async (row) => (await request('POST', '/v1/alarms', { wake_message: MESSAGE, ...sent(row) })).id as string,
    change: (id, { field, value, base }) => patch(id, { ...timeOf(field, base), [field]: value }),
    clear: (id, field) => patch(id, { [field]: null }),
    preview: async (time) => shownBy(await request('POST', '/v1/alarms/preview', time)),
    backfill: async (id, part, isDry) =>
      countsOf(await request('POST', `/v1/alarms/${id}/backfill`, { ...part, ...dryRun(isDry) })),
  };
}

/** The zone beside a field that is a time. */
const timeOf = (field: FieldName, base: Fields): Fields =>
  fieldOf(field).edit === 'set' && base.timezone !== undefined ? { timezone: base.timezone } : {};

async function mcpSurface(owner: Owner, env: Record<string, string>): Promise<Surface> {
  const client = new Client({ name: 'surfaces', version: '0' });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [PROGRAM, 'mcp'], env }));
  atEnd(owner, () => client.close());
  const set = async (given: Fields & { alarm_id?: string; dry_run?: boolean }) => {
    const { isError, content, structuredContent } = await client.callTool({ name: 'alarm_set', arguments: given });
    assert.ok(!isError, JSON.stringify(content));
    return structuredContent as Fields;
  };
  return {
    async create(row) {
      // Words have the zone of the user.
      const { timezone, ...rest } = sent(row);
      const given = row.field === 'when' ? rest : { ...rest, timezone };
      return (await set({ wake_message: MESSAGE, ...given })).id as string;
    },
    change: (id, { field, value }) => set({ alarm_id: id, [field]: value }),
    clear: (id, field) => set({ alarm_id: id, [field]: null }),
    preview: async (time) => shownBy(await set({ ...time, dry_run: true })),
  };
}

/** A flag with its value, by the table of fields. */
function flagsOf({ field, typed, flags }: Row): readonly string[] {
  if (flags !== undefined) return flags;
  const flag = `--${fieldOf(field).flag!.name}`;
  return typed === undefined ? [flag] : [flag, typed];
}

function cliSurface(reveille: (...args: string[]) => Promise<string>): Surface {
  const zone = ['--zone', ZONE];
  return {
    async create(row) {
      const { field, typed, base } = row;
      const time = base.cron_expr === undefined ? [] : ['--cron', String(base.cron_expr)];
      const where = base.timezone === undefined ? [] : zone;
      const given = field === 'when' ? [typed!, ...zone] : [...time, ...where, ...flagsOf(row)];
      return JSON.parse(await reveille('alarm', 'set', MESSAGE, ...given, '--json')).id;
    },
    change(id, row) {
      const { field, typed } = row;
      const given = field === 'when' ? ['--cron', typed!, ...zone] : flagsOf(row);
      return reveille('alarm', 'edit', id, ...given);
    },
    clear: (id, field) => reveille('alarm', 'edit', id, '--clear', fieldOf(field).flag!.name),
    async preview({ cron_expr, holidays }) {
      const except = holidays === undefined ? [] : ['--holidays', String(holidays)];
      const given = ['--cron', String(cron_expr), ...zone, ...except];
      return shownBy(JSON.parse(await reveille('alarm', 'preview', ...given, '--json')));
    },
    async backfill(id, { from, to }, isDry) {
      const dry = isDry ? ['--dry-run'] : [];
      return countsOf(
        JSON.parse(await reveille('alarm', 'backfill', id, '--from', from, '--to', to, ...dry, '--json')),
      );
    },
  };
}

/** A browser sends the default of each list that was not touched. */
const UNTOUCHED_LISTS = Object.fromEntries(
  OWNER_FIELDS.flatMap((name) => {
    const { type, form, absent } = fieldOf(name);
    return type === 'choice' && form ? [[form.name, String(absent)]] : [];
  }),
);

/** The console's form, as a browser sends it. */
async function consoleSurface(origin: string, address: string): Promise<Surface> {
  const opened = await fetch(address, { redirect: 'manual' });
  const [setCookie] = opened.headers.getSetCookie();
  const cookie = setCookie!.split(';')[0]!;
  const base = `${origin}${/Path=(\/~[^;]+)/.exec(setCookie!)![1]}`;
  const page = await (await fetch(`${base}alarms`, { headers: { cookie } })).text();
  const csrf = /data-csrf="([^"]+)"/.exec(page)![1]!;
  const post = (form: string, controls: Record<string, string>) =>
    fetch(`${base}${form}`, {
      ...{ method: 'POST', redirect: 'manual', headers: { cookie, origin } },
      body: new URLSearchParams({ csrf, ...controls }),
    });
  const send = async (form: string, controls: Record<string, string>): Promise<string> => {
    const response = await post(form, { do: 'set', message: MESSAGE, ...UNTOUCHED_LISTS, ...controls });
    const complaint = /role="alert">([^<]*)/.exec(await response.text())?.[1];
    assert.equal(response.status, 303, `${response.status} ${complaint}`);
    return /[0-9a-f-]{36}/.exec(response.headers.get('location') ?? '')![0];
  };
  const isTime = (field: FieldName) => field === 'when' || field === 'rrule';
  const controlsOf = ({ field, typed = 'on', controls }: Row): Record<string, string> =>
    controls ?? (isTime(field) ? { when: typed, zone: ZONE } : { [fieldOf(field).form!.name]: typed });
  const timeOfForm = ({ cron_expr: cron }: Fields) => (cron === undefined ? {} : { when: String(cron), zone: ZONE });
  return {
    create: (row) => send('alarms/new', { ...timeOfForm(row.base), ...controlsOf(row) }),
    change: (id, row) => send(`alarms/${id}/edit`, controlsOf(row)),
    clear: (id) => send(`alarms/${id}/edit`, {}),
    async preview({ cron_expr, holidays = '' }) {
      const given = { when: String(cron_expr), zone: ZONE, holidays: String(holidays) };
      const text = await (await post('alarms/new', { do: 'read', ...UNTOUCHED_LISTS, ...given })).text();
      const [, reading = ''] = /<p class="reading" role="status">(.*?)<\/p>/s.exec(text) ?? [];
      return { fires: [...reading.matchAll(/<strong>([^<]*)/g)].map(([, time]) => time!) };
    },
    async backfill(id, part, isDry) {
      const path = `alarms/${id}/backfill`;
      const text = await (await post(path, part)).text();
      const [, added = 0] = /<h2>(\d+) fires?</.exec(text) ?? [];
      const [, known = 0] = /(\d+) of that time/.exec(text) ?? [];
      if (!isDry) {
        const confirmed = /name="from" value="([^"]+)"><input type="hidden" name="to" value="([^"]+)"/.exec(text)!;
        const { status } = await post(path, { from: confirmed[1]!, to: confirmed[2]!, sure: 'yes' });
        assert.equal(status, 303);
      }
      return { added: Number(added), known: Number(known) };
    },
  };
}

async function librarySurface(home: string): Promise<Surface> {
  const { chronos } = await localClients({ REVEILLE_HOME: home });
  return {
    create: async (row) => (await chronos.createAlarm({ wake_message: MESSAGE, ...(sent(row) as object) })).id,
    change: (id, { field, value, base }) =>
      chronos.patchAlarm(id, { ...timeOf(field, base), [field]: value } as AlarmPatchBody),
    clear: (id, field) => chronos.patchAlarm(id, { [field]: null }),
    preview: async (time) => shownBy(await chronos.previewAlarm(time as AlarmPreviewBody)),
    backfill: async (id, part, isDry) => countsOf(await chronos.backfillAlarm(id, { ...part, ...dryRun(isDry) })),
  };
}

function pythonSurface(owner: Owner, given: object): Surface {
  const clientFolder = join(import.meta.dirname, '..', '..', '..', 'clients', 'python');
  const python = spawn(pythonForClient()!, ['-B', join(import.meta.dirname, 'surface.py')], {
    env: { PATH: process.env.PATH ?? '', PYTHONPATH: clientFolder, GIVEN: JSON.stringify(given) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  atEnd(owner, () => void python.kill('SIGKILL'));
  const lines = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  const call = async (request: { do?: string; id?: string; fields: object }) => {
    python.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await lines.next();
    assert.ok(!done, 'the script has ended');
    const answer = JSON.parse(value) as Fields & { error?: string };
    assert.equal(answer.error, undefined);
    return answer;
  };
  return {
    create: async (row) => (await call({ fields: { wake_message: MESSAGE, ...sent(row) } })).id as string,
    change: (id, { field, value, base }) => call({ id, fields: { ...timeOf(field, base), [field]: value } }),
    clear: (id, field) => call({ id, fields: { [field]: null } }),
    preview: async (time) => shownBy(await call({ do: 'preview', fields: time })),
    backfill: async (id, { from, to }, isDry) =>
      countsOf(await call({ do: 'backfill', id, fields: { from_: from, to, ...dryRun(isDry) } })),
  };
}

/** Every surface, against one installation. */
export async function startStack(owner: Owner): Promise<Stack> {
  const { home, run, reveille, address } = await startInstallation(owner, saying('Yes.'));
  const whoami = JSON.parse(await reveille('agent', 'whoami', '--json')) as { label: string; key_file: string };
  const secrets = JSON.parse(readFileSync(join(home, 'secrets.json'), 'utf8')) as { CHRONOS_TOKEN: string };
  const given = {
    ...{ label: whoami.label, key_file: whoami.key_file },
    ...{ chronos_url: run.chronos_url, chronos_token: secrets.CHRONOS_TOKEN },
  };
  const request = await overHttp(run.chronos_url, secrets.CHRONOS_TOKEN, whoami.label, whoami.key_file);
  const env = { PATH: process.env.PATH ?? '', HOME: home, REVEILLE_HOME: home, TZ: ZONE };
  const unavailable = () => assert.fail('there is no Python');
  const absent: Surface = { create: unavailable, change: unavailable, clear: unavailable, preview: unavailable };
  return {
    surfaces: {
      HTTP: httpSurface(request),
      'MCP tool': await mcpSurface(owner, env),
      CLI: cliSurface(reveille),
      'console form': await consoleSurface(run.public_url!, await address()),
      'TypeScript library': await librarySurface(home),
      'Python client': skipOf('Python client') ? absent : pythonSurface(owner, given),
    },
    read: (id) => request('GET', `/v1/alarms/${id}`),
    list: async () => (await request('GET', '/v1/alarms?limit=500')) as { count: number },
    set: async (fields) => (await request('POST', '/v1/alarms', { wake_message: MESSAGE, ...fields })).id as string,
    reveille,
  };
}
