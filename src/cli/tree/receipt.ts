/** `receipt …`: what happened to an intent, and whether it can be proved. */
import type { Command } from 'commander';
import type { VerifyFlags } from '../commands/receipt-verify.ts';
import { addCommand, addGroup } from './command.ts';

export function addReceipt(program: Command): void {
  const receipt = addGroup(program, 'receipt', 'check what an executor says that it has done');
  addCommand<VerifyFlags>(receipt, {
    usage: 'verify <file>',
    summary: 'check a receipt offline: what was asked, who approved it, what was done, and whether all of it holds',
    example: 'reveille receipt verify receipt.json --key 6b3f…c2',
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
