/** Evidence against a claimed or proven identity, as the filter of the API takes it. */
export const CONFLICTS = [
  'spoofed-browser',
  'address-foreign',
  'host-foreign',
  'network-foreign',
  'signature-failed',
  'signed-as-another',
  'signed-with-foreign-fingerprint',
  'signed-from-foreign-address',
] as const
