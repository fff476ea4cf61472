/** The command tree and its help: ten commands for daily use on the first page, and one list for each other topic. */
import type { Command, Help } from 'commander';
import { VERSION } from '../../wire/version.ts';
import type { CliProcess } from '../cli-process.ts';
import { addAlarm, addCalendar, addImport } from './alarm.ts';
import { StrictCommand } from './command.ts';
import { addDaemons } from './daemons.ts';
import { addAgent, addApprover, addClient, addEvents, addSubmitter, addUser } from './identity.ts';
import { addIntent, addPolicy, addReceipt, addTools } from './intent.ts';
import { addMachine } from './machine.ts';
import { addChat, addConnect, addLog, addNotify, addProfile, addTime } from './person.ts';
import {
  addBackup,
  addCompletion,
  addConfig,
  addDocs,
  addDoctor,
  addInit,
  addMemory,
  addMigrate,
  addOpen,
  addReshard,
  addService,
  addStatus,
} from './upkeep.ts';

/** Builds a new tree: commander stores parsed values in it. */
export function buildProgram(process: CliProcess): Command {
  const { stdout, stderr } = process;
  const program = new StrictCommand(process, 'reveille')
    .description('alarms, turns and approvals for AI agents')
    .version(VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError('(add --help for usage)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      getOutHelpWidth: () => (stdout.isTTY ? stdout.columns : 80),
      getErrHelpWidth: () => (stderr.isTTY ? stderr.columns : 80),
    });
  addDaemons(program);
  addInit(program);
  addOpen(program);
  addStatus(program);
  addAlarm(program);
  addCalendar(program);
  addImport(program);
  addChat(program);
  addLog(program);
  addConnect(program);
  addAgent(program);
  addMachine(program);
  addIntent(program);
  addApprover(program);
  addSubmitter(program);
  addUser(program);
  addClient(program);
  addEvents(program);
  addNotify(program);
  addReceipt(program);
  addTools(program);
  addPolicy(program);
  addProfile(program);
  addTime(program);
  addMemory(program);
  addService(program);
  addBackup(program);
  addMigrate(program);
  addReshard(program);
  addDoctor(program);
  addCompletion(program);
  addConfig(program);
  addDocs(program);
  addHelp(program);
  return program;
}

/** Command names by topic. The first group of sections is the first page; each topic is a page of `help TOPIC`. */
const DAILY: readonly (readonly [title: string, names: readonly string[]])[] = [
  ['Alarms', ['alarm', 'log']],
  ['Agent', ['up', 'status', 'chat', 'open']],
  ['Approvals', ['intent', 'notify']],
  ['Setup', ['connect', 'doctor']],
];

const TOPICS: readonly (readonly [topic: string, about: string, names: readonly string[]])[] = [
  [
    'agents',
    'machines, memory, tools and the time of the user',
    ['machine', 'agent', 'memory', 'tools', 'time', 'profile', 'calendar', 'import'],
  ],
  ['approvals', 'keys, policies and receipts', ['approver', 'submitter', 'policy', 'receipt']],
  [
    'operate',
    'run in the background, configure, back up, upgrade and scale',
    [
      ...['service', 'stop', 'logs', 'config', 'docs', 'backup', 'restore', 'upgrade'],
      ...['init', 'user', 'client', 'events', 'migrate', 'reshard', 'completion'],
    ],
  ],
  [
    'daemons',
    'each daemon alone, and the MCP servers',
    ['chronosd', 'router', 'executor', 'neo', 'notifier', 'mcp', 'chronometric', 'capability', 'ledger'],
  ],
];

/** Every command that is in a list, for the test that no command is missing. */
export const LISTED: readonly string[] = [
  ...DAILY.flatMap(([, names]) => names),
  ...TOPICS.flatMap(([, , names]) => names),
];

const INDENT = '  ';

function rows(program: Command, helper: Help, names: readonly string[], nameWidth: number): string[] {
  const width = helper.helpWidth ?? 80;
  return names.flatMap((name) => {
    const command = program.commands.find((one) => one.name() === name);
    if (command === undefined) return [];
    const summary = helper.boxWrap(command.description(), Math.max(40, width - nameWidth - 4)).split('\n');
    return summary.map((line, at) => `${INDENT}${(at === 0 ? name : '').padEnd(nameWidth)}  ${line}`);
  });
}

const widthOf = (names: readonly string[]) => Math.max(...names.map((name) => name.length));

/** The first page: `reveille --help`. */
function firstPage(program: Command, helper: Help): string {
  const nameWidth = widthOf(DAILY.flatMap(([, names]) => names));
  const topicWidth = widthOf(TOPICS.map(([topic]) => topic));
  return [
    'Usage: reveille <command> [options]',
    '',
    'Reveille gives AI agents a sense of time: alarms that fire to the millisecond,',
    'start the agent and deliver its message as one turn.',
    ...DAILY.flatMap(([title, names]) => ['', title, ...rows(program, helper, names, nameWidth)]),
    '',
    'More commands',
    ...TOPICS.map(([topic, about]) => `${INDENT}reveille help ${topic.padEnd(topicWidth)}  ${about}`),
    '',
    'Options',
    `${INDENT}-h, --help     help for any command: reveille alarm set --help`,
    `${INDENT}-v, --version  print the version`,
    '',
    'Start here: reveille up',
    '',
  ].join('\n');
}

function topicPage(program: Command, helper: Help, topic: (typeof TOPICS)[number]): string {
  const [name, about, names] = topic;
  return [
    `Usage: reveille <command> [options]`,
    '',
    `${name[0]!.toUpperCase()}${name.slice(1)}: ${about}`,
    ...rows(program, helper, names, widthOf(names)),
    '',
    'Help for a command: reveille <command> --help',
    '',
  ].join('\n');
}

/** Replaces commander's own `help`: it also knows topics, where no command has the name of the topic. */
function addHelp(program: Command): void {
  program.configureHelp({
    formatHelp(command, helper) {
      if (command === program) return firstPage(program, helper);
      return Object.getPrototypeOf(helper).formatHelp.call(helper, command, helper);
    },
  });
  program.helpCommand(false);
  program
    .command('help [words...]', { hidden: true })
    .description('print the help of a command or topic')
    .action(async (words: string[]) => {
      const [first] = words;
      const topic = words.length === 1 ? TOPICS.find(([name]) => name === first) : undefined;
      if (topic !== undefined) {
        const helper = program.createHelp();
        helper.prepareContext({ helpWidth: program.configureOutput().getOutHelpWidth?.() ?? 80 });
        program.configureOutput().writeOut?.(topicPage(program, helper, topic));
        return;
      }
      await program.parseAsync([...words, '--help'], { from: 'user' });
    });
}
