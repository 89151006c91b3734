import { readFileSync } from 'node:fs'

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

/** Why tests that need NATS are skipped; `false` where it is there, or has to be. */
export function withoutNats(): string | false {
  const isRequired = process.env['E2E_PROGRAMS'] === 'required'
  return services().nats !== null || isRequired
    ? false
    : 'there is no NATS: install nats-server (Debian: apt-get install nats-server)'
}
