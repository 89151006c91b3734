import { Fault } from '../../shared/fault.ts'

// Parses JSON columns. Throws a Fault if the content is not what the program wrote:
// the disk or a person changed it.

export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw damaged(error)
  }
}

export function storedTexts(text: string): readonly string[] {
  const value = storedJson(text)
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
  throw damaged(null)
}

export function storedObject(text: string): Readonly<Record<string, unknown>> {
  const value = storedJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw damaged(null)
}

function damaged(cause: unknown): Fault {
  return new Fault('STORE_DAMAGED', 'the database holds what was never written to it: restore a backup', {
    cause,
  })
}
