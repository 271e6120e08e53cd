import DefaultTheme from 'vitepress/theme';
import './tables.css';

/** VitePress' own theme, with tables that fit the page. */
export default DefaultTheme;
