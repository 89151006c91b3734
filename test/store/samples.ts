import type { AuditEntry } from '../../src/store/people/audit.ts'
import type { NewKey } from '../../src/store/people/keys.ts'

// For tests and other programs.

export function newKey(number: number): NewKey {
  return {
    id: `key_${number}`,
    hash: `hash ${number}`,
    name: `key ${number}`,
    scopes: ['read', 'detect'],
    apps: '*',
    plan: 'standard',
    createdAtMs: 1_800_000_000_000 + number,
    expiresAtMs: null,
  }
}

export function entry(number: number): AuditEntry {
  return {
    id: `aud_${number}`,
    atMs: 1_800_000_000_000 + number,
    principal: 'command-line',
    action: 'createKey',
    subject: null,
    apps: '*',
    detail: { name: 'ä \u0000 "', deep: { list: [1, null] } },
    address: '2001:db8::1',
    requestId: null,
  }
}
