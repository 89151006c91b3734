import type { Io } from './io.ts'

export const JSON_OPTION = { name: 'json', description: 'Print JSON, for a program' }

export function printJson(io: Io, value: unknown): void {
  io.stdout.write(`${JSON.stringify(value)}\n`)
}
