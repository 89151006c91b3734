/** The text without what differs in each run: ids, ports and the time. */
export function steady(text: string): string {
  return text
    .replace(/(Decision-Id: |decision_id"?:"?|Decision )[0-9a-f-]{36}/gi, '$1id')
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}\b/g, 'id')
    .replace(/Date: .* GMT/g, 'Date: now')
    .replace(/(X-Forwarded-Port: )\d+/g, '$1port')
    .replace(/(127\.0\.0\.1:)\d+/g, '$1port')
}
