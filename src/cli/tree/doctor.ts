/** `doctor`. */
import type { Command } from 'commander';
import { addCommand } from './command.ts';

export function addDoctor(program: Command): void {
  addCommand(program, {
    usage: 'doctor',
    summary: 'check this installation and say what to do about what is wrong',
    example: 'reveille doctor',
    tolerant: true,
    run: async (context) => (await import('../commands/doctor.ts')).doctor(context),
  });
}
