import type { Arguments, Operand } from '../../terminal/command.ts'

/** What the subcommands of `signatures` have in common. */
export const SIGNATURE_FILES: Operand = {
  name: 'FILE',
  description:
    'A file of signatures, or a folder of *.yaml and *.jsonl; without one, those that come with Gatehouse',
  optional: true,
  many: true,
}

/** `null`: the folder that comes with Gatehouse. */
export function pathsOf({ operands }: Arguments): readonly string[] | null {
  return operands.length === 0 ? null : operands
}

export function many(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`
}
