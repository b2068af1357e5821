'use strict';
// Print shows what is folded.
let opened = [];
addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    opened.forEach(details => { details.open = true; });
});
addEventListener('afterprint', () => opened.forEach(details => { details.open = false; }));
// The value of a gain, as its inputs stand. The page was written with the same formula.
const cost = document.getElementById('cost');
if (cost) {
    const input = name => Number(cost.querySelector(`[name=${name}]`).value) || 0;
    const show = () => {
        const hours = input('years') * 8766 * input('use') / 100;
        const power = input('watts') * (1 + input('cooling') / 100) / 1000 * hours * input('price_kwh');
        for (const row of cost.querySelectorAll('[data-gain]')) {
            const value = row.dataset.gain * (input('node') + power);
            row.querySelector('.each').textContent = value.toFixed(0);
            row.querySelector('.all').textContent = (value * input('nodes')).toFixed(0);
        }
    };
    cost.addEventListener('input', show);
}
