/**
 * Provider `command`: an agent without a Reveille daemon. It is a program that runs once for each wake, or an external
 * server (src/agents). The command line uses the name of its preset as the provider.
 */
import { z } from 'zod';
import {
  argument,
  checks,
  checksFact,
  checksFlag,
  type Descriptor,
  folderFlags,
  listed,
  sandbox,
  sandboxFact,
  sandboxFlag,
  text,
  variableFacts,
  variables,
  variablesFlag,
  writable,
  writableFact,
  writableFlag,
} from './descriptor.ts';
import { plain, shownAddress, shownArguments, shownVariables } from './redaction.ts';

/** The name of a preset, and of its file. */
export const presetNameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be the name of a preset: a-z 0-9 _ -');

const LONGEST_TURN_SECONDS = 86_400;

export const commandSpecSchema = z.strictObject({
  preset: presetNameSchema,
  /** The folder in which the program or the server works. */
  cwd: argument.startsWith('/', 'must be an absolute path').optional(),
  /** The program: a name on the router's PATH, or an absolute path; by default that of the preset. */
  bin: argument.min(1).optional(),
  /** More arguments for the program. */
  args: z.array(argument).max(256).optional(),
  env: variables,
  /** A turn that takes longer is ended. */
  timeout_seconds: z.int().min(1).max(LONGEST_TURN_SECONDS).optional(),
  /** The address of the server, for presets that have one. */
  url: z
    .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address', abort: true })
    .refine((text) => {
      const url = new URL(text);
      return url.username === '' && url.password === '' && url.hash === '';
    }, 'must be an address without user, password or fragment; give a password as token')
    .optional(),
  /** Lets a webhook use an address of this computer or of a private network. */
  allow_private: z.boolean().optional(),
  writable,
  sandbox,
  checks,
});
export type CommandSpec = z.output<typeof commandSpecSchema>;

export const COMMAND: Descriptor<'command', typeof commandSpecSchema> = {
  name: 'command',
  label: 'a preset',
  about: 'an agent: claude, codex, gemini, opencode, openclaw, a2a, webhook, or a preset of your own',
  schema: commandSpecSchema,
  shown: {
    ...{ preset: plain, cwd: plain, bin: plain, args: shownArguments, env: shownVariables, timeout_seconds: plain },
    // The path of a webhook may be its password, and a user's own preset may be a webhook under any name.
    ...{ url: (url) => shownAddress(String(url), true), allow_private: plain, writable: plain, sandbox: plain },
    checks: plain,
  },
  identity: ['preset', 'bin', 'url'],
  flags: [
    { usage: '--', about: 'more arguments', member: 'args', kind: 'words' },
    // A target with an address is not a program, and its server chooses the folder.
    ...folderFlags('the folder of the conversation (default: here)', ({ url }) =>
      url === undefined ? '.' : undefined,
    ),
    variablesFlag,
    {
      usage: '--bin <program>',
      about: 'another program than that of the preset, or its path',
      member: 'bin',
      kind: 'program',
    },
    { usage: '--url <url>', about: 'the address of the server', member: 'url', kind: 'text' },
    {
      usage: '--timeout-seconds <n>',
      about: 'end a turn that takes longer',
      member: 'timeout_seconds',
      kind: { whole: [1, LONGEST_TURN_SECONDS] },
    },
    {
      usage: '--allow-private',
      about: 'allow a webhook on this computer or in a private network',
      member: 'allow_private',
      kind: 'switch',
    },
    writableFlag,
    sandboxFlag,
    checksFlag,
  ],
  facts: (spec) => [
    ['agent', [text(spec.preset), text(spec.url) ?? text(spec.cwd)].filter((part) => part !== undefined).join(' ')],
    ['program', text(spec.bin)],
    ['arguments', listed(spec.args)],
    ['folder', text(spec.cwd)],
    ['longest turn', spec.timeout_seconds === undefined ? undefined : `${spec.timeout_seconds} s`],
    writableFact(spec),
    sandboxFact(spec),
    checksFact(spec),
    ...variableFacts(spec),
  ],
};
