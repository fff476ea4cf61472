/**
 * `intent …`, `policy …`, `receipt …` and `tools …`: tasks for the executor, its rules, what it leaves behind, and its
 * tools.
 */

import type { Command } from 'commander';
import type { ListFlags, ReceiptFlags, ShowFlags, SubmitFlags } from '../commands/intent.ts';
import type { AnswerFlags } from '../commands/intent-answer.ts';
import type { PolicyExplainFlags } from '../commands/policy.ts';
import type { VerifyFlags } from '../commands/receipt-verify.ts';
import { addCommand, addGroup } from './command.ts';

type UserFlags = { user?: string };

const ofUser = (command: Command) =>
  command.option('--user <label>', "whose intents (default: this machine's own user)");

const answerOptions = (command: Command) =>
  ofUser(command)
    .option('--answer <words>', 'words for the executor and the receipt')
    .option('--displayed-sha256 <hex>', 'the digest of the question that was looked at, where nobody can be asked')
    .option('--call-sha256 <hex>', 'the digest of the call that was looked at; the answer counts for no other');

const look = () => import('../commands/intent.ts');
const answer = () => import('../commands/intent-answer.ts');
const act = () => import('../commands/intent.ts');

export function addIntent(program: Command): void {
  const intent = addGroup(program, 'intent', 'tasks that a person approves step by step');
  addCommand<SubmitFlags>(intent, {
    usage: 'submit [prose]',
    summary: 'hand a task over, in words or as JSON',
    example: 'reveille intent submit "Transfer 10 EUR from savings to checking"',
    options: (command) =>
      ofUser(command)
        .option('--json-file <file>', 'an intent with its plan, as JSON; - reads standard input')
        .option('--idempotency-key <key>', 'the same key and task give the same intent')
        .option('--conversation <id>', 'the conversation that it belongs to'),
    run: async (context, flags, [prose]) => (await import('../commands/intent.ts')).intentSubmit(context, flags, prose),
  });
  addCommand<ListFlags>(intent, {
    usage: 'list',
    summary: 'list intents, newest first',
    example: 'reveille intent list --status awaiting_approval',
    options: (command) =>
      ofUser(command)
        .option('--status <status>', 'only in this state')
        .option('--limit <n>', 'at most so many (default: 50)'),
    run: async (context, flags) => (await look()).intentList(context, flags),
  });
  addCommand<ShowFlags>(intent, {
    usage: 'show <id>',
    summary: 'show an intent, its plan, and the questions that wait',
    example: 'reveille intent show 01980000-0000-7000-8000-000000000000',
    options: (command) => ofUser(command).option('--full', 'long texts in what waits for approval are not cut'),
    run: async (context, flags, [id]) => (await look()).intentShow(context, flags, id!),
  });
  addCommand<AnswerFlags>(intent, {
    usage: 'approve <id> [step]',
    summary: "show the exact call of a step and approve it with the approver's key",
    example: 'reveille intent approve 01980000-0000-7000-8000-000000000000',
    options: answerOptions,
    run: async (context, flags, [id, step]) => (await answer()).intentApprove(context, flags, id!, step),
  });
  addCommand<AnswerFlags>(intent, {
    usage: 'deny <id> [step]',
    summary: "refuse a step with the approver's key; it is not carried out",
    example: 'reveille intent deny 01980000-0000-7000-8000-000000000000 --answer "not this month"',
    options: answerOptions,
    run: async (context, flags, [id, step]) => (await answer()).intentDeny(context, flags, id!, step),
  });
  addCommand<UserFlags>(intent, {
    usage: 'cancel <id>',
    summary: 'end an intent, as long as no call that cannot be undone has started',
    example: 'reveille intent cancel 01980000-0000-7000-8000-000000000000',
    options: ofUser,
    run: async (context, flags, [id]) => (await act()).intentAct(context, 'cancel', flags, id!),
  });
  addCommand<UserFlags>(intent, {
    usage: 'reconcile <id>',
    summary: 'ask the tools again what became of calls whose outcome is unknown',
    example: 'reveille intent reconcile 01980000-0000-7000-8000-000000000000',
    options: ofUser,
    run: async (context, flags, [id]) => (await act()).intentAct(context, 'reconcile', flags, id!),
  });
  addCommand<ReceiptFlags>(intent, {
    usage: 'receipt <id>',
    summary: 'print the receipt, or write it to a file',
    example: 'reveille intent receipt 01980000-0000-7000-8000-000000000000 --output receipt.json',
    options: (command) => ofUser(command).option('--output <file>', 'a new file for it'),
    run: async (context, flags, [id]) => (await look()).intentReceipt(context, flags, id!),
  });
  addCommand<UserFlags>(intent, {
    usage: 'watch <id>',
    summary: 'follow an intent until it is over; ends with 0 when it was completed',
    example: 'reveille intent watch 01980000-0000-7000-8000-000000000000',
    options: ofUser,
    run: async (context, flags, [id]) => (await import('../commands/intent-watch.ts')).intentWatch(context, flags, id!),
  });
  intent.addHelpText('after', '\nExample:\n  $ reveille intent list --status awaiting_approval');
}

const several = (value: string, before: readonly string[] = []) => [...before, value];

export function addPolicy(program: Command): void {
  const policy = addGroup(program, 'policy', 'the rules by which the executor allows, asks and denies');
  addCommand(policy, {
    usage: 'check [file]',
    summary: 'say what a policy means and what is wrong with it (default: the one that the executor uses)',
    example: 'reveille policy check policy.yaml',
    run: async (context, _flags, [file]) => (await import('../commands/policy.ts')).policyCheck(context, file),
  });
  addCommand<PolicyExplainFlags>(policy, {
    usage: 'explain [file]',
    summary: 'say what a policy makes of a call, and why (default: the one that the executor uses)',
    example: `reveille policy explain policy.yaml --tool ledger/transfer --args '{"to":"bob","amount":"25.00","currency":"EUR"}'`,
    options: (command) =>
      command
        .option('--tool <alias/tool>', 'the tool that is called')
        .option('--args <json>', 'its arguments (default: {})')
        .option('--user <label>', 'whose call it is (default: that of this installation)')
        .option('--unattended', 'an alarm began the turn and nobody is there')
        .option('--at <instant>', 'when it is made (default: now)')
        .option(
          '--spent <amount>',
          'what was spent with this tool just before, such as "10 EUR"; may be repeated',
          several,
        )
        .option('--amount <amount>', 'what is at stake (default: what the manifest says of the arguments)')
        .option('--surface <class>', 'natural or escalate (default: what the manifest says)')
        .option('--manifest <file>', 'the manifest of the executor (default: that of this installation)'),
    run: async (context, flags, [file]) => (await import('../commands/policy.ts')).policyExplain(context, flags, file),
  });
}

export function addReceipt(program: Command): void {
  const receipt = addGroup(program, 'receipt', 'check what an executor says that it has done');
  addCommand<VerifyFlags>(receipt, {
    usage: 'verify [file]',
    summary: 'check a receipt offline: what was asked, who approved it, what was done, and whether all of it holds',
    example: 'reveille intent receipt 019eca54-7c11 | reveille receipt verify --key 6b3f…c2',
    options: (command) =>
      command
        .option(
          '--key <key>',
          'whose receipt it must be: the public key or its id (64 hex digits), a file that holds one, or a did',
        )
        .option('--trust-embedded', "take the file's own word for whose receipt it is")
        .option(
          '--approver <key>',
          'who must have approved what was started: a public key (64 hex digits), or a file that holds one; may be repeated',
          (key: string, others: string[] = []) => [...others, key],
        )
        .addHelpText('after', '\nA <file> of - is standard input; a file may hold several receipts as JSON lines.')
        .addHelpText(
          'after',
          'Exit status: 0 all of it holds, 1 something does not or nobody said whose key it is, 2 it could not be looked at.',
        ),
    // Whoever checks a receipt need not have an installation, nor a healthy one.
    tolerant: true,
    run: async (context, flags, [file]) =>
      (await import('../commands/receipt-verify.ts')).receiptVerify(context, flags, file!),
  });
}

export function addTools(program: Command): void {
  const tools = addGroup(program, 'tools', 'look after the tools that agent manifests declare');
  addCommand(tools, {
    usage: 'pin [manifest]',
    summary: 'write down how each tool is described now, so that a change is noticed (default: the manifest of Neo)',
    example: 'reveille tools pin agents/neo.json',
    run: async (context, _flags, [manifest]) => (await import('../commands/tools.ts')).toolsPin(context, manifest),
  });
}
