import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'

/** Runs an example that has a gatehouse.yaml. `doctor` may find something on the machine of the test. */
export function withConfiguration(
  { folder, app, shell }: Bench,
  example: string,
): ReturnType<Bench['shell']> {
  writeFileSync(join(folder, 'gatehouse.yaml'), `proxy:\n  upstream: ${app.url}\n`)
  return shell(example.replace(/^(gatehouse doctor [^#\n]*)/m, '$1 || true '))
}
