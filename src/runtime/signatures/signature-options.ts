import type { Arguments, Operand } from '../../terminal/command.ts'

/** An operand of all `signatures` subcommands. */
export const SIGNATURE_FILES: Operand = {
  name: 'FILE',
  description: 'A file of signatures, or a folder of *.yaml and *.jsonl; default: the built-in ones',
  optional: true,
  many: true,
}

/** `null`: the built-in folder. */
export function pathsOf({ operands }: Arguments): readonly string[] | null {
  return operands.length === 0 ? null : operands
}

export function many(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`
}
