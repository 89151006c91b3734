import { Fault } from '../shared/fault.ts'
import { shown } from '../shared/problem.ts'

/** A Map, so that any key is safe, even `__proto__`. */
export type Mapping = ReadonlyMap<string, unknown>

/** Throws a Fault with the place if the value is not a mapping. */
export function mappingAt(at: string, value: unknown): Mapping {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return new Map(Object.entries(value))
  throw refused(at, value, 'a mapping')
}

/** The same; `null` if the value is missing or null. */
export function optionalMappingAt(at: string, value: unknown): Mapping | null {
  return value === undefined || value === null ? null : mappingAt(at, value)
}

export function optionalListAt(at: string, value: unknown): readonly unknown[] | null {
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return value
  throw refused(at, value, 'a list')
}

export function textAt(at: string, value: unknown): string {
  if (typeof value === 'string') return value
  throw refused(at, value, 'text')
}

export function optionalTextAt(at: string, value: unknown): string | null {
  return value === undefined || value === null ? null : textAt(at, value)
}

export function optionalBooleanAt(at: string, value: unknown): boolean {
  if (value === undefined || value === null || typeof value === 'boolean') return value === true
  throw refused(at, value, 'true or false')
}

export function portAt(at: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535) return value
  throw refused(at, value, 'a port')
}

function refused(at: string, value: unknown, takes: string): Fault {
  return new Fault('JSON_INVALID', `${at} is ${shown(value)}; expected ${takes}`)
}
