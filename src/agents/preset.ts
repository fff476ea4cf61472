/**
 * A preset: the interface of one kind of agent, as data. The included ones are in `presets/`. A user's own are in
 * `$REVEILLE_HOME/presets` and override those of the same name.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { CommandMachine } from '../router/machines/machine.ts';
import { type CommandSpec, presetNameSchema } from '../router/providers/command.ts';
import { DAEMON_PROVIDERS } from '../router/providers/descriptors.ts';
import { nearestOf } from '../wire/edit-distance.ts';
import { ReveilleError, systemCodeOf, thrownText } from '../wire/errors.ts';
import { parseOrThrow } from '../wire/validate.ts';

/** Placeholders that a program's argument may contain besides plain text. */
const PLACEHOLDERS = ['<session>', '<message>', '<args>', '<model>', '<tools>'];

/** The parser of a program's output; `readers/` has one file for each. */
const OUTPUT_FORMATS = ['claude-json', 'codex-jsonl', 'gemini-json', 'plain-text'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

const argument = z
  .string()
  .min(1)
  .max(4096)
  .refine(
    (text) => !/^<.*>$/.test(text) || PLACEHOLDERS.includes(text),
    `must be plain text or one of ${PLACEHOLDERS.join(', ')}`,
  );
const argumentList = z.array(argument).max(64);
const phrases = z.array(z.string().min(3).max(200)).max(16);
const variableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name');
const statePath = z
  .string()
  .max(1024)
  .regex(/^(?:~|\$[A-Za-z_][A-Za-z0-9_]*)?\/[^\0]*$/, 'must start with ~/, / or a variable such as $CODEX_HOME/')
  .refine((path) => !path.split('/').includes('..'), 'must not have ".." in it');
const seconds = z
  .int()
  .min(1)
  .max(7 * 86_400);
const pattern = z
  .string()
  .max(200)
  .refine((text) => {
    try {
      new RegExp(text);
      return true;
    } catch {
      return false;
    }
  }, 'must be a regular expression');

/** The form of a session's own ids: an unknown conversation with such a name is assumed to be one. */
const session = pattern.optional();

/** When the target has lost a conversation, the turn fails, or a new conversation replaces it. */
const whenGone = z.enum(['fail', 'begin_anew']).default('fail');

/** How long a turn may wait for a busy or unreachable target before it fails. */
const waitSeconds = seconds.default(21_600);

const common = { about: z.string().min(1).max(500), timeout_seconds: seconds.max(86_400).optional() };

/** The two forms of a command: the prompt as an argument (`<message>`), and on standard input. */
const commandForms = z
  .strictObject({ argument: argumentList.optional(), stdin: argumentList.optional() })
  .superRefine(({ argument: withWords, stdin }, context) => {
    const issue = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (!withWords && !stdin) issue([], 'must have argument, stdin or both');
    if (withWords && !withWords.includes('<message>'))
      issue(['argument'], 'must have "<message>" as one of its entries');
    if (stdin?.includes('<message>'))
      issue(['stdin'], 'must not have "<message>": the prompt arrives on standard input');
  });

/** Arguments for what an alarm says of its turn, with a placeholder as one of their entries. */
const termArguments = (placeholder: '<model>' | '<tools>') =>
  argumentList.refine((entries) => entries.includes(placeholder), `must have "${placeholder}" as one of its entries`);

const terminalPresetSchema = z
  .strictObject({
    kind: z.literal('terminal'),
    ...common,
    bin: z.string().min(1).max(1024),
    /** How to install the program, for the error about a missing one. */
    install: z.string().min(1).max(500),
    new: commandForms,
    /** Without it every turn begins a new conversation. */
    resume: commandForms.optional(),
    /**
     * `framed`: facts about the alarm, then message and payload between marker lines; `bare`: message and payload alone.
     */
    words: z.enum(['framed', 'bare']).default('framed'),
    /** The arguments for another model; they come with `<args>`. Without it, a turn with a model is refused. */
    model: termArguments('<model>').optional(),
    /**
     * How the program is limited to the tools of an alarm. Without it, a turn with tools is refused: a list of tools that
     * need no approval is not a limit.
     */
    tools: z
      .strictObject({
        /** The arguments; `<tools>` becomes the names, separated by commas. They come with `<args>`. */
        arguments: termArguments('<tools>'),
        /** The names that the arguments can limit; a turn with another name is refused. */
        names: pattern,
        /** Arguments of the machine with which the program would have other tools too. */
        excluded_by: argumentList.default([]),
      })
      .optional(),
    reads: z.enum(OUTPUT_FORMATS),
    session,
    /** Whether an open session of the program can take a wake through its channel (`channel/`). */
    channel: z.boolean().optional(),
    /** Patterns in the program's error output: the turn did not run, and may later. */
    busy: phrases.default([]),
    /** Patterns in the program's error output: it does not know the session. */
    gone: phrases.default([]),
    when_gone: whenGone,
    /**
     * The paths that the program writes besides its working folder: its login, its sessions, its caches. Each starts with
     * `~/`, `/` or a variable (`$NAME/`), and is ignored when the variable is not set. A folder ends with a slash; a file
     * must exist.
     */
    state: z.array(statePath).max(64).default([]),
    /** The part of it that stays read-only: settings that make the program run commands. */
    read_only: z.array(statePath).max(64).default([]),
    /** Variables of the router that the program gets, if they are set. */
    environment: z.array(variableName).max(64).default([]),
    wait_seconds: waitSeconds,
  })
  .superRefine(({ model, tools, new: begin, resume = {} }, context) => {
    // In a command without the place for them, the terms of an alarm would be lost.
    if (!model && !tools) return;
    for (const [name, forms] of [
      ['new', begin],
      ['resume', resume],
    ] as const)
      for (const form of ['argument', 'stdin'] as const)
        if (forms[form] && !forms[form].includes('<args>'))
          context.addIssue({
            code: 'custom',
            path: [name, form],
            message: 'must have "<args>", because of model or tools',
          });
  });

const opencodePresetSchema = z.strictObject({
  kind: z.literal('opencode'),
  ...common,
  session,
  when_gone: whenGone,
  wait_seconds: waitSeconds,
});

const a2aPresetSchema = z.strictObject({ kind: z.literal('a2a'), ...common, wait_seconds: waitSeconds });

const openclawPresetSchema = z.strictObject({
  kind: z.literal('openclaw'),
  ...common,
  path: z.string().regex(/^\/[\x21-\x7e]{0,200}$/, 'must be a path that starts with /'),
  /** The gateway's name of the conversation; `<conversation>` is replaced by its id. */
  session_key: z.string().min(1).max(200).default('<conversation>'),
  /** Additional members of the request. */
  body: z.record(z.string().max(64), z.union([z.string(), z.number(), z.boolean()])).default({}),
});

const webhookPresetSchema = z.strictObject({
  kind: z.literal('webhook'),
  ...common,
  /** The `type` of the event. */
  event: z.string().min(1).max(100),
});

const presetSchema = z.discriminatedUnion('kind', [
  terminalPresetSchema,
  opencodePresetSchema,
  a2aPresetSchema,
  openclawPresetSchema,
  webhookPresetSchema,
]);

type Named<T> = T & { name: string };
export type Preset = Named<z.output<typeof presetSchema>>;
export type PresetOf<Kind extends Preset['kind']> = Extract<Preset, { kind: Kind }>;
export type TerminalPreset = PresetOf<'terminal'>;

/** Creates the agent of a machine. */
export type AgentMaker<P extends Preset, T> = (preset: P, machine: CommandMachine) => T;

/**
 * Parses a preset's file.
 *
 * @param name the file's name without its ending
 * @param source the file, for error messages
 * @throws ReveilleError `invalid_request` with the file, the member and the valid form
 */
function parsePreset(name: string, text: string, source: string): Preset {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ReveilleError('invalid_request', `the preset ${source} must be JSON (${thrownText(cause)})`, { cause });
  }
  try {
    return { name, ...parseOrThrow(presetSchema, value) };
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw new ReveilleError('invalid_request', `the preset ${source} cannot be used: ${thrown.message}`);
  }
}

const PROGRAM_MEMBERS = ['bin', 'args', 'env'] as const;

const ADDRESS_OF: Readonly<Record<Exclude<Preset['kind'], 'terminal'>, string>> = {
  opencode: 'the address of the OpenCode server, such as http://127.0.0.1:4096',
  openclaw: 'the address of the OpenClaw gateway, such as http://127.0.0.1:18789',
  a2a: "the address of the agent, of its agent card, or of one of the card's interfaces",
  webhook: 'the address that events are posted to',
};

function refuse(message: string): never {
  throw new ReveilleError('invalid_request', message);
}

/** @throws ReveilleError `invalid_request` with the missing member, or one that the preset does not allow */
export function checkSpec(preset: Preset, spec: CommandSpec): void {
  if (preset.kind === 'terminal') {
    if (spec.url !== undefined)
      refuse(`spec.url does not go with the preset ${preset.name}, which starts a program; leave it out`);
    if (spec.allow_private !== undefined)
      refuse('spec.allow_private goes only with presets of kind webhook; leave it out');
    if (spec.bin?.includes('/') && !spec.bin.startsWith('/'))
      refuse(`spec.bin must be a name or an absolute path (got ${JSON.stringify(spec.bin)})`);
    return;
  }
  const foreign = PROGRAM_MEMBERS.find((name) => spec[name] !== undefined);
  if (foreign !== undefined)
    refuse(`spec.${foreign} does not go with the preset ${preset.name}, which starts no program; leave it out`);
  if (spec.url === undefined) refuse(`spec.url is required for the preset ${preset.name}: ${ADDRESS_OF[preset.kind]}`);
  if (preset.kind !== 'webhook') {
    if (spec.allow_private !== undefined)
      refuse('spec.allow_private goes only with presets of kind webhook; leave it out');
    if (new URL(spec.url).search !== '')
      refuse(`spec.url must be an address without a query for the preset ${preset.name}`);
  }
  if (preset.kind !== 'opencode' && spec.cwd !== undefined)
    refuse(`spec.cwd does not go with the preset ${preset.name}; leave it out`);
}

const SHIPPED = fileURLToPath(new URL('./presets', import.meta.url));
const ENDING = '.json';

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (thrown) {
    const code = systemCodeOf(thrown);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new ReveilleError('unavailable', `the preset ${path} cannot be read: ${code ?? thrown}`, { cause: thrown });
  }
}

function namesIn(folder: string): string[] {
  try {
    const files = readdirSync(folder).filter((file) => file.endsWith(ENDING));
    return files.map((file) => file.slice(0, -ENDING.length));
  } catch {
    // The user's folder need not exist.
    return [];
  }
}

/** Loads presets: the user's own folder first, then the included ones. */
export class Presets {
  readonly #own: string;

  /** @param own the user's folder; its files are read again for each use, so that a change applies at once */
  constructor(own: string) {
    this.#own = own;
  }

  /** In order of name. */
  names(): string[] {
    const found = [...namesIn(SHIPPED), ...namesIn(this.#own)];
    return [...new Set(found)].filter((name) => presetNameSchema.safeParse(name).success).sort();
  }

  /**
   * @param name matches `presetNameSchema`, so that it cannot leave the folders
   * @throws ReveilleError `invalid_request` when none has this name, or when its file is invalid
   */
  get(name: string): Preset {
    for (const folder of [this.#own, SHIPPED]) {
      const path = join(folder, `${name}${ENDING}`);
      const text = textOf(path);
      if (text !== undefined) return parsePreset(name, text, path);
    }
    const [presets, providers] = [this.names(), DAEMON_PROVIDERS.map((one) => one.name)];
    const nearest = nearestOf(name, [...providers, ...presets]);
    const meant = nearest === undefined ? '' : `; did you mean ${nearest}?`;
    throw new ReveilleError(
      'invalid_request',
      `spec.preset must be one of ${presets.join(', ')}, or the name of a file in ${this.#own} (got ${JSON.stringify(name)}); providers are ${providers.join(', ')}${meant}`,
    );
  }
}
