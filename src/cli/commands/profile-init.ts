/** `reveille profile init`: a few questions, and a profile. One that is there is never written over. */
import { createInterface } from 'node:readline/promises';
import { newProfilePlace } from '../../chronometric/profile/find-profile.ts';
import {
  NO_ANSWERS,
  PROFILE_QUESTIONS,
  type ProfileAnswers,
  profileText,
} from '../../chronometric/profile/profile-draft.ts';
import { isThere } from '../../chronometric/profile/profile-file.ts';
import { writePrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';

export type ProfileInitFlags = { yes?: boolean };

/** Asks whoever sits there, each question until its answer can be used. */
async function ask({ out, process }: CliContext): Promise<ProfileAnswers> {
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  // The end of the input is an answer too: none.
  const left = new Promise<never>((_, reject) =>
    reader.once('close', () => reject(new ReveilleError('conflict', 'the questions were left; nothing was written'))),
  );
  left.catch(() => {});
  let answers = NO_ANSWERS;
  try {
    for (const { question, otherwise, read } of PROFILE_QUESTIONS)
      for (;;) {
        const given = (await Promise.race([reader.question(`${question} [${otherwise}] `), left])).trim();
        const answered = given === '' ? answers : read(given, answers);
        if (typeof answered !== 'string') {
          answers = answered;
          break;
        }
        out.line(`  ${answered}`);
      }
    return answers;
  } finally {
    reader.close();
  }
}

export async function profileInit(context: CliContext, { yes }: ProfileInitFlags): Promise<void> {
  const { out } = context;
  const place = newProfilePlace(context.settings, isThere);
  if (!place)
    throw new ReveilleError(
      'invalid_request',
      'there is no home folder to write a profile to; set HOME or REVEILLE_PROFILE',
    );
  const { path, hides } = place;
  if (isThere(path))
    throw new ReveilleError(
      'conflict',
      `${path} exists already and is never written over; look at it with: reveille profile check`,
    );
  const interactive = context.process.stdin.isTTY === true && out.live;
  if (!yes && !interactive)
    throw new UsageError('nobody can be asked here; "reveille profile init --yes" writes a profile without asking');
  if (!yes) {
    out.line(`A few questions; Enter takes what stands in brackets. The answers go to ${path}, and nowhere else.`);
    out.line();
  }
  const answers = yes ? NO_ANSWERS : await ask(context);
  writePrivateFile(path, profileText(answers));
  out.result({ path, hides: hides ?? null }, [`Wrote ${path}`, '  see what it means with: reveille profile check']);
  if (hides !== undefined) out.remark(`${hides} is no longer read: ${path} comes before it.`);
}
