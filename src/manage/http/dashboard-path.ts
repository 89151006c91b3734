/** The path prefix of the dashboard's pages. */
export const DASHBOARD_PATH = '/dashboard/'
