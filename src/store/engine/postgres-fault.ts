import pg from 'pg'
import { Fault } from '../../shared/fault.ts'

/**
 * Converts errors of the environment to Faults. Errors of a constraint or a statement stay unchanged.
 * `isConnecting`: no statement has run, so none can be the cause.
 */
export function asFault(error: unknown, isConnecting: boolean): unknown {
  const { code, message } = error as { code?: unknown; message: string }
  if (error instanceof pg.DatabaseError) {
    const found = STATES.find(([state]) => state.test(error.code ?? ''))
    return found === undefined
      ? error
      : new Fault(found[1], said(found[2], error.code, message), { cause: error })
  }
  const name = typeof code === 'string' ? code : undefined
  if (!isConnecting && !SYSTEM.test(name ?? '') && !LOST.test(message)) return error
  return new Fault('STORE_UNAVAILABLE', said('the database cannot be reached', name, message), {
    cause: error,
  })
}

/** If several addresses failed, the error has an empty message. */
function said(what: string, code: string | undefined, message: string): string {
  const why = [code, message].filter((part) => part !== undefined && part !== '').join(': ')
  return why === '' ? what : `${what} (${why})`
}

/** Patterns of SQLSTATE; see the appendix on error codes in PostgreSQL's documentation. */
const STATES = [
  [/^53100$/, 'STORE_FULL', 'there is no room left for the database'],
  [/^(?:55P03|40001|40P01)$/, 'STORE_LOCKED', 'another program holds what this one needs'],
  [/^57014$/, 'STORE_UNAVAILABLE', 'the database took too long'],
  [/^(?:28...|3D000|42501)$/, 'STORE_UNAVAILABLE', 'the database does not let us in'],
  [/^25006$/, 'STORE_UNAVAILABLE', 'the database cannot be written to'],
  [/^(?:08...|57P..|53...|25P03)$/, 'STORE_UNAVAILABLE', 'the database cannot be reached'],
  [/^58...$/, 'STORE_UNAVAILABLE', 'the database cannot read or write its files'],
  [/^XX00[12]$/, 'STORE_DAMAGED', 'the database is damaged: restore a backup'],
] as const
/** ECONNRESET and the like. */
const SYSTEM = /^E[A-Z]+$/
/** Messages of pg. */
export const LOST =
  /^(?:Connection terminated|Client (?:has encountered|was closed)|Query read timeout|timeout )/
