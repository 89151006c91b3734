import { readFileSync } from 'node:fs'
import { skipped } from '../e2e/programs.ts'

/** The servers that tests talk to. test/services/start.ts finds or starts them before the first test. */
export interface Services {
  /** Its user may create databases. */
  readonly postgres: string
  /** `null`: no server runs, and nats-server is not installed. */
  readonly nats: string | null
}

/** Where a machine usually has these servers. */
export const USUAL = {
  postgres: process.env['GATEHOUSE_TEST_POSTGRES'] ?? 'postgres://root@127.0.0.1:5432/test',
  nats: process.env['GATEHOUSE_TEST_NATS'] ?? 'nats://127.0.0.1:4222',
}

export const SERVICES_FILE = '.tap/services.json'

/** A program that runs without tap, such as a benchmark, uses the usual places. */
export function services(): Services {
  try {
    return JSON.parse(readFileSync(SERVICES_FILE, 'utf8')) as Services
  } catch {
    return USUAL
  }
}

/** The reason to skip a test that needs a NATS server; `false` if there is one, and in CI. */
export function withoutNats(): string | false {
  return services().nats === null && skipped('nats-server')
}
