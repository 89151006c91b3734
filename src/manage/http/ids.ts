import { randomBytes } from 'node:crypto'

/** Returns for example `key_x7c1Jq0aT5b2…`: a prefix for the kind of resource, then 96 random bits. */
export function newId(
  prefix:
    | 'key'
    | 'tsk'
    | 'sub'
    | 'whk'
    | 'whs'
    | 'dlv'
    | 'evt'
    | 'aud'
    | 'fbk'
    | 'cli'
    | 'grt'
    | 'gtk'
    | 'trs'
    | 'usr'
    | 'ctx'
    | 'msg'
    | 'cbk'
    | 'cmp'
    | 'pay'
    | 'cas',
): string {
  return `${prefix}_${randomBytes(12).toString('base64url')}`
}
