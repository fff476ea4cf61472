/** `intent …`, `policy …`, `receipt …` and `tools …`: intents, policies, receipts and tool pins. */
import type { Command } from 'commander';
import type { ListFlags, ReceiptFlags, ShowFlags, SubmitFlags } from '../commands/intent.ts';
import type { AnswerFlags } from '../commands/intent-answer.ts';
import type { PolicyExplainFlags } from '../commands/policy.ts';
import type { VerifyFlags } from '../commands/receipt-verify.ts';
import { addCommand, addGroup, ofUser, several, type UserFlags } from './command.ts';

const answerOptions = (command: Command) =>
  ofUser(command)
    .option('--answer <words>', 'a remark for the executor and the receipt')
    .option('--displayed-sha256 <hex>', 'digest of the displayed question, for use without a terminal')
    .option('--call-sha256 <hex>', 'digest of the displayed call; the answer is valid for this call only');

const load = () => import('../commands/intent.ts');
const answer = () => import('../commands/intent-answer.ts');

export function addIntent(program: Command): void {
  const intent = addGroup(program, 'intent', 'submit, approve and follow intents', [
    'reveille intent list --status awaiting_approval',
    'reveille intent approve 01980000-0000-7000-8000-000000000000',
  ]);
  addCommand<SubmitFlags>(intent, {
    usage: 'submit [prose]',
    summary: 'submit an intent, as a sentence or as JSON',
    examples: [
      'reveille intent submit "Transfer 10 EUR from savings to checking"',
      'reveille intent submit --json-file intent.json',
    ],
    options: (command) =>
      ofUser(command)
        .option('--json-file <file>', 'an intent with its plan, as JSON; - reads standard input')
        .option('--idempotency-key <key>', 'idempotency key: the same key and text return the same intent')
        .option('--conversation <id>', 'the conversation of the intent'),
    run: async (context, flags, [prose]) => (await load()).intentSubmit(context, flags, prose),
  });
  addCommand<ListFlags>(intent, {
    usage: 'list',
    summary: 'list intents, newest first',
    examples: ['reveille intent list', 'reveille intent list --status awaiting_approval'],
    options: (command) =>
      ofUser(command)
        .option('--status <status>', 'only intents with this status')
        .option('--limit <n>', 'at most this many (default: 50)'),
    run: async (context, flags) => (await load()).intentList(context, flags),
  });
  addCommand<ShowFlags>(intent, {
    usage: 'show <id>',
    summary: 'show an intent, its plan and its open questions',
    examples: ['reveille intent show 01980000-0000-7000-8000-000000000000', 'reveille intent show 01980000 --full'],
    options: (command) => ofUser(command).option('--full', 'do not shorten long texts of calls that need approval'),
    run: async (context, flags, [id]) => (await load()).intentShow(context, flags, id!),
  });
  addCommand<AnswerFlags>(intent, {
    usage: 'approve <id> [step]',
    summary: 'show the exact call of a step and sign the approval',
    examples: ['reveille intent approve 01980000-0000-7000-8000-000000000000', 'reveille intent approve 01980000 pay'],
    options: answerOptions,
    run: async (context, flags, [id, step]) => (await answer()).intentAnswer(context, true, flags, id!, step),
  });
  addCommand<AnswerFlags>(intent, {
    usage: 'deny <id> [step]',
    summary: 'deny a step; it is not executed',
    examples: [
      'reveille intent deny 01980000-0000-7000-8000-000000000000',
      'reveille intent deny 01980000 --answer "not this month"',
    ],
    options: answerOptions,
    run: async (context, flags, [id, step]) => (await answer()).intentAnswer(context, false, flags, id!, step),
  });
  addCommand<UserFlags>(intent, {
    usage: 'cancel <id>',
    summary: 'cancel an intent before its first irreversible call has started',
    examples: ['reveille intent cancel 01980000-0000-7000-8000-000000000000', 'reveille intent cancel 01980000'],
    options: ofUser,
    run: async (context, flags, [id]) => (await load()).intentAct(context, 'cancel', flags, id!),
  });
  addCommand<UserFlags>(intent, {
    usage: 'reconcile <id>',
    summary: 'query the tools for the outcome of calls with an unknown outcome',
    examples: ['reveille intent reconcile 01980000-0000-7000-8000-000000000000', 'reveille intent reconcile 01980000'],
    options: ofUser,
    run: async (context, flags, [id]) => (await load()).intentAct(context, 'reconcile', flags, id!),
  });
  addCommand<ReceiptFlags>(intent, {
    usage: 'receipt <id>',
    summary: 'print the receipt, or write it to a file',
    examples: [
      'reveille intent receipt 01980000 --output receipt.json',
      'reveille intent receipt 01980000 | reveille receipt verify --trust-embedded',
    ],
    options: (command) => ofUser(command).option('--output <file>', 'the file to write; it must not exist'),
    run: async (context, flags, [id]) => (await load()).intentReceipt(context, flags, id!),
  });
  addCommand<UserFlags>(intent, {
    usage: 'watch <id>',
    summary: 'follow an intent until it is final; exit status 0 means completed',
    examples: ['reveille intent watch 01980000-0000-7000-8000-000000000000', 'reveille intent watch 01980000 --json'],
    options: ofUser,
    run: async (context, flags, [id]) => (await load()).intentWatch(context, flags, id!),
  });
}

export function addPolicy(program: Command): void {
  const policy = addGroup(program, 'policy', 'check and explain the policy of the executor', [
    'reveille policy check policy.yaml',
    'reveille policy explain --tool ledger/transfer',
  ]);
  addCommand(policy, {
    usage: 'check [file]',
    summary: 'validate a policy and print its rules (default: the policy in use)',
    examples: ['reveille policy check', 'reveille policy check policy.yaml'],
    run: async (context, _flags, [file]) => (await import('../commands/policy.ts')).policyCheck(context, file),
  });
  addCommand<PolicyExplainFlags>(policy, {
    usage: 'explain [file]',
    summary: 'print the decision of a policy for one call, and the reason (default: the policy in use)',
    examples: [
      'reveille policy explain --tool fs/write_file',
      `reveille policy explain policy.yaml --tool ledger/transfer --args '{"to":"bob","amount":"25.00","currency":"EUR"}'`,
    ],
    options: (command) =>
      command
        .option('--tool <alias/tool>', 'the called tool')
        .option('--args <json>', 'its arguments (default: {})')
        .option('--user <label>', 'the user (default: the user of this installation)')
        .option('--unattended', 'the turn was started by an alarm')
        .option('--at <instant>', 'the time of the call (default: now)')
        .option('--spent <amount>', 'an earlier amount with this tool, such as "10 EUR"; repeatable', several)
        .option('--amount <amount>', 'the amount of the call (default: from its arguments, by the manifest)')
        .option('--surface <class>', 'natural or escalate (default: from the manifest)')
        .option('--manifest <file>', 'the manifest of the executor (default: the one in use)'),
    run: async (context, flags, [file]) => (await import('../commands/policy.ts')).policyExplain(context, flags, file),
  });
}

export function addReceipt(program: Command): void {
  const receipt = addGroup(program, 'receipt', 'verify receipts offline', [
    'reveille receipt verify receipt.json --key executor.pub',
    'reveille receipt verify receipt.json --trust-embedded',
  ]);
  addCommand<VerifyFlags>(receipt, {
    usage: 'verify [file]',
    summary: 'verify a receipt: signatures, hash chain, approvals and calls',
    examples: [
      'reveille receipt verify receipt.json --key executor.pub',
      'reveille intent receipt 019eca54 | reveille receipt verify --trust-embedded',
    ],
    options: (command) =>
      command
        .option(
          '--key <key>',
          'the expected executor: a public key or key id (64 hex digits), a file with one, or a did',
        )
        .option('--trust-embedded', 'accept the executor key that is in the receipt')
        .option(
          '--approver <key>',
          'an expected approver: a public key (64 hex digits) or a file with one; repeatable',
          several,
        )
        .addHelpText('after', '\nA <file> of - is standard input. A file may contain several receipts as JSON lines.')
        .addHelpText('after', 'Exit status: 0 valid, 1 invalid, unreadable or no expected key given, 2 no such file.'),
    // A receipt can be verified without a healthy installation.
    tolerant: true,
    run: async (context, flags, [file]) =>
      (await import('../commands/receipt-verify.ts')).receiptVerify(context, flags, file!),
  });
}

export function addTools(program: Command): void {
  const tools = addGroup(program, 'tools', 'pin the tool definitions of manifests', [
    'reveille tools pin',
    'reveille tools pin agents/neo.json',
  ]);
  addCommand(tools, {
    usage: 'pin [manifest]',
    summary: 'record the current tool definitions, so that a change is detected (default: the manifest of Neo)',
    examples: ['reveille tools pin', 'reveille tools pin agents/neo.json'],
    run: async (context, _flags, [manifest]) => (await import('../commands/tools.ts')).toolsPin(context, manifest),
  });
}
