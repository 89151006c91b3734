import { randomBytes } from 'node:crypto'

/** `key_x7c1Jq0aT5b2…`: 96 random bits behind what it is the id of. */
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
    | 'cbk',
): string {
  return `${prefix}_${randomBytes(12).toString('base64url')}`
}
