/** The pattern of a field name or any other token (RFC 9110 §5.6.2). */
export const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"

/**
 * The pattern of a field line with its line end (RFC 9112 §5): no blank before the colon, no control
 * character except tab.
 */
export const FIELD_LINE = fieldLineOf(TOKEN)

/** The same for names of letters, digits and hyphens only. */
export const PLAIN_FIELD_LINE = fieldLineOf('[-0-9A-Za-z]+')

function fieldLineOf(name: string): string {
  return `${name}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n`
}
