/**
 * RFC 7638 thumbprints of keys whose private half is printed in a specification: anyone can sign with them.
 */
export const PUBLISHED_KEYS: ReadonlySet<string> = new Set([
  // RFC 9421, appendix B.1: RSA, RSA-PSS, P-256, Ed25519. Web Bot Auth's drafts use them, too.
  'BHj8s0GPnMEQtkaULIM-PLgEhLBbuGUQ1vMxmBWZzEo',
  'oD0HwocPBSfpNy5W3bpJeyFGY_IQ_YpqxSjQ3Yd-CLA',
  'ydQXMtvbsOsZyFir-Y7A8t7fKEM1gbKPvyFkdpu4fvI',
  'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U',
  // RFC 9635, section 7.3.
  'NIYMyBjsDjyBC9P537D6ITzkpD8NtRji9yapEzC66mQ',
  // RFC 8037, appendix A.1, which is the first key of RFC 8032's tests.
  'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  // RFC 7517, appendix A: P-256 and RSA; RFC 7515, appendix A.3.
  'cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s',
  'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs',
  'oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U',
  // RFC 9449, from its examples.
  '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I',
])
