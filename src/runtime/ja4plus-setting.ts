import { Fault } from '../shared/fault.ts'

/**
 * Whether JA4S, JA4H and JA4X are computed (setting `fingerprints.ja4plus`, on by default). For commands that
 * use no other setting, which start faster without loading the configuration.
 */
export function ja4plusFrom(env: Readonly<Record<string, string | undefined>>): boolean {
  const value = env['GATEHOUSE_FINGERPRINTS_JA4PLUS']
  if (value === undefined || value === '' || value === 'true') return true
  if (value === 'false') return false
  throw new Fault('CONFIG_INVALID', `GATEHOUSE_FINGERPRINTS_JA4PLUS is "${value}"; expected true or false`)
}
