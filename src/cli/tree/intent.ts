/** `intent …`: tasks for the executor, their questions and their receipts. */
import type { Command } from 'commander';
import type { AnswerFlags } from '../commands/intent-answer.ts';
import type { ListFlags, ReceiptFlags, ShowFlags } from '../commands/intent-look.ts';
import type { SubmitFlags } from '../commands/intent-submit.ts';
import { addCommand, addGroup } from './command.ts';

type UserFlags = { user?: string };

const ofUser = (command: Command) =>
  command.option('--user <label>', "whose intents (default: this machine's own user)");

const answerOptions = (command: Command) =>
  ofUser(command)
    .option('--answer <words>', 'words for the executor and the receipt')
    .option('--displayed-sha256 <hex>', 'the digest of the question that was looked at, where nobody can be asked')
    .option('--call-sha256 <hex>', 'the digest of the call that was looked at; the answer counts for no other');

const look = () => import('../commands/intent-look.ts');
const answer = () => import('../commands/intent-answer.ts');
const act = () => import('../commands/intent-act.ts');

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
    run: async (context, flags, [prose]) =>
      (await import('../commands/intent-submit.ts')).intentSubmit(context, flags, prose),
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
