"""The meaning of words near a figure: the operation, its direction, or an origin elsewhere.

Their weights are in ``weighed``.
"""

from __future__ import annotations

from functools import cache

from ba_tui.core.text.patterns import regex

_TOKEN = regex(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")

_HINTS = {
    "up": (
        "grew grow grows grown growth growing rose rise rises risen rising increase increased increases up "
        "gain gained gains climbed climb jumped jump surged higher more greater larger bigger exceeds "
        "exceeded exceeding beats ahead outperforms better improved improvement plus longer heavier older "
        "above outsells expanded expansion increment uplift lift wuchs gewachsen wachstum stieg steigt "
        "gestiegen anstieg steigerung zunahme zugenommen mehr höher größer zuwachs darüber erhöht hausse "
        "augmentation augmenté croissance progression progressé supérieur supérieure dessus gagné grimpé "
        "creció crecimiento aumento aumentó subió subida mayor superior encima incremento ganó 增长 增加 上升 "
        "上涨 提高 提升 高出 高于 超出 多出 增幅 涨幅 增至 升至 领先 更高 更多 增速 増加 増 上昇 伸び 上回 "
        "高い 多い 成長"
    ),
    "down": (
        "fell fall falls fallen falling dropped drop drops decline declined declines decreased decrease "
        "decreases down lost loss lower less fewer smaller behind trails trailing shrank slipped cut reduced "
        "reduction reduces minus cheaper worse saved saves savings save lighter shorter younger short below "
        "dropping shed missed misses fiel fällt gefallen sank sinkt gesunken rückgang abnahme abgenommen "
        "weniger niedriger kleiner geringer darunter einbruch gesenkt baisse diminution diminué recul reculé "
        "chute chuté inférieur inférieure dessous perdu bajó cayó caída descenso disminución disminuyó menor "
        "inferior debajo redujo reducción perdió 下降 减少 降低 下跌 下滑 低于 低出 减幅 跌幅 降至 落后 更低 "
        "更少 少于 缩小 节省 減少 減 低下 下落 下回 低い 少ない"
    ),
    "change": (
        "change changed changes difference differences gap spread margin differ differs range delta δ "
        "variation swing step interval lead distance apart discrepancy advantage net interquartile iqr width "
        "faster slower quicker schneller langsamer veränderung verändert unterschied differenz abstand spanne "
        "lücke änderung vorsprung spannweite schwankung interquartilsabstand écart différence variation "
        "évolution étendue avance amplitude diferencia brecha variación cambio rango ventaja margen intervalo "
        "变化 相差 差距 差额 差值 变动 幅度 差异 极差 之差 变为 环比 同比 差 変化 変動 差分"
    ),
    "share": (
        "share shares proportion accounts account accounted represents represent represented contributes "
        "contribute contributed holds fraction portion comprises constitutes makes responsible coverage rate "
        "margin reached anteil anteile anteils entfallen entfällt entfielen ausmachen macht beträgt quote "
        "ausgemacht marge part parts proportion représente représentent quota taux marge cuota proporción "
        "participación representa representan porcentaje tasa parte 占 占比 份额 比例 比重 比率 占据 率 "
        "利润率 割合 シェア 占 比率 構成比"
    ),
    "mean": (
        "average averages averaged averaging mean means avg durchschnitt durchschnittlich durchschnittliche "
        "durchschnittlichen mittel mittelwert schnitt mittlere mittleren mittlerer moyenne moyen moyennes "
        "promedio media medio 平均 均值 平均值 平均"
    ),
    "sum": (
        "total totals sum sums together altogether overall combined totalling totaling totaled totalled "
        "aggregate cumulative all entire whole jointly both summe insgesamt zusammen gesamt gesamte gesamten "
        "gesamtsumme gesamtzahl gesamtwert addiert somme ensemble totale cumul cumulé suma conjunto totales "
        "juntos 合计 总计 共 总共 一共 总和 总额 总量 累计 总数 总 共计 合計 総 計 全体 総計"
    ),
    "ratio": (
        "times ratio factor fold multiple multiplied multiplies twice double triple fache fachen fach mal "
        "verhältnis faktor doppelt fois rapport facteur veces razón factor 倍 比值 之比 倍"
    ),
    "cagr": (
        "annually annual annualised annualized cagr compound compounded yearly jährlich jährliche jährlichen "
        "annuel annuelle anual anuales 年均 复合 年化 每年 年率 年平均"
    ),
    "per": ("per each every apiece je pro jeder jede par chaque por cada 每 人均 客单价 单均 一件 あたり 当たり"),
    "peak": (
        "highest lowest peak maximum minimum max min largest smallest top bottom best worst strongest weakest "
        "leader record most least höchste höchsten niedrigste niedrigsten spitze tiefste größte kleinste "
        "spitzenreiter schlusslicht höchstwert tiefstwert maximal minimal sommet plus máximo mínimo pico 最高 "
        "最低 最大 最小 峰值 低谷 最多 最少 高点 低点 顶峰 首位"
    ),
    "median": ("median médiane mediana 中位数 中位 中央値 zentralwert"),
    "spread": (
        "deviation correlation correlated variance percentile quantile quartile stddev std sd skewness "
        "kurtosis significance confidence standardabweichung korrelation perzentil quantil varianz "
        "corrélation variance quartil percentil desviación correlación 标准差 相关系数 分位数 方差 百分位 "
        "标准偏差 置信 標準偏差 相関 分散"
    ),
    "elsewhere": (
        "industry usually typically commonly quoted benchmark generally literature survey surveys studies "
        "elsewhere experience nationwide worldwide branchendurchschnitt branchenüblich branche üblich "
        "üblicherweise gewöhnlich erfahrungsgemäß secteur habituellement généralement sectorielle sectorial "
        "habitualmente normalmente 行业 通常 一般 业内 业界 業界 往常"
    ),
    "before": ("vorjahr vorjahres 去年 上年 前年 昨年 去年同期 前期"),
    "target": (
        "target targets goal goals expected expect expectation expectations budget budgeted planned threshold "
        "limit ziel ziels erwartet erwartung erwarteten erwartungen plan budget schwelle vorgabe objectif "
        "attendu attendait prévu prévision seuil attendiez cible objetivo meta esperado esperaba previsto "
        "umbral esperabas 目标 预计 预期 计划 预算 阈值 原本 目標 予想 予定"
    ),
    "rest": (
        "rest remaining remainder others other restliche restlichen übrige übrigen reste autres resto demás "
        "restantes 其余 其他 剩余 剩下 残り その他 without"
    ),
    "rows": (
        "rows row groups group periods period entries records record items categories category observations "
        "years months weeks days quarters members classes samples series files commits regions countries "
        "zeilen zeile gruppen zeiträume zeiträumen einträge datensätze perioden jahre monate kategorien "
        "stufen lignes périodes groupes entrées catégories mois années filas períodos grupos entradas "
        "categorías meses años registros 期 行 组 个 条 项 类 笔 年 月 种 名 组数 区域 国家 件 か国 行目"
    ),
    "columns": ("columns column fields field variables spalten felder colonnes champs columnas campos 列 字段"),
}
_PHRASES = {
    "share": (
        "of total|of all|of the total|out of|von allen|der gesamtsumme|du total|del total|made up|make up|"
        "makes up|of which"
    ),
    "sum": ("in all|in total|au total|en total|all told|adds up|add up|come to|comes to"),
    "cagr": ("per year|a year|per annum|each year|every year|pro jahr|im jahr|par an|al año|por año|p a"),
    "spread": ("standard deviation|écart type|desviación estándar|coefficient of|confidence interval"),
    "elsewhere": (
        "for comparison|well known|zum vergleich|à titre de comparaison|a modo de comparación|"
        "por lo general|the usual|rule of thumb|would cost|i would expect|i d expect|never made"
    ),
    "before": (
        "last year|previous year|prior year|year ago|a year earlier|année précédente|an dernier|"
        "año anterior|año pasado|last month|last quarter|last january|last february|last march|last april|"
        "last may|last june|last july|last august|last september|last october|last november|last december"
    ),
    "per": ("a day|a week|a month|a quarter|an hour|a minute|a head|per head"),
    "ratio": ("as much|as many|as high|as often|as large|as long|as big"),
    "change": ("from top to bottom|high low"),
    "up": ("more than|plus de|más de|plus élevé|mehr als"),
    "down": ("less than|fewer than|moins de|menos de|weniger als|moins élevé"),
    "rest": ("all but|anderen|the rest"),
    "counting": (
        "how many|number of|count of|wie viele|anzahl der|anzahl von|combien de|nombre de|cuántos|cuántas|número de|"
        "多少个|几个|いくつ"
    ),
    "peak": ("le plus|la plus|más alto|más bajo"),
}


def tokens_of(text: str) -> list[tuple[str, int, int]]:
    """Return the lower-case words of a text with their positions; each ideograph and kana is a word."""
    return [(found[0].lower(), found.start(), found.end()) for found in _TOKEN.finditer(text)]


@cache
def hints() -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    """Return phrases by first word: the further words, and what the phrase hints at. Longest first."""
    found: dict[str, set[tuple[tuple[str, ...], str]]] = {}
    listed = [(phrase, kind) for kind, words in _HINTS.items() for phrase in words.split()]
    listed += [(phrase, kind) for kind, phrases in _PHRASES.items() for phrase in phrases.split("|")]
    for phrase, kind in listed:
        words = [word for word, _, _ in tokens_of(phrase)]
        if words:
            found.setdefault(words[0], set()).add((tuple(words[1:]), kind))
    return {first: tuple(sorted(rest, key=lambda each: (-len(each[0]), each))) for first, rest in found.items()}


_CONCEPTS = (
    "revenue sales turnover umsatz umsätze erlös einnahmen ingresos ventas chiffre recettes amount amt 销售额 "
    "收入 营收 金额 売上",
    "order orders bestellung bestellungen auftrag aufträge commandes commande pedidos pedido 订单 注文",
    "customer customers kunde kunden client clients clientes cliente 客户 顾客 顧客",
    "population pop einwohner einwohnerzahl bevölkerung habitants población habitantes 人口 居民",
    "price prices preis preise prix precio precios 价格 股价 单价 価格 株価",
    "salary salaries gehalt gehälter lohn salaire salaires salario salarios sal wage wages 工资 薪资 薪水 给料",
    "count n number anzahl nombre número cantidad cnt sample 数量 样本量 个数 件数 stichprobe",
    "life lebenserwartung vie vida 寿命",
    "gdp bip pib 国内生产总值 bruttoinlandsprodukt",
    "percap percapita capita head kopf habitant cápita 人均",
    "temperature temp temperatur température temperatura tmax tmin 气温 温度",
    "rain precipitation precip regen niederschlag pluie lluvia 降水 降雨 雨量",
    "wind windgeschwindigkeit vent viento 风速",
    "weight mass gewicht poids peso masse masa 体重 重量 質量",
    "length länge longueur longitud 长度 长",
    "flight flights flug flüge abflüge vols vuelos departures 航班 航班数 便",
    "delay delays verspätung verspätet retard retraso dep 延误 遅延",
    "cancelled canceled storno stornoquote annulé cancelado cancelados cancel 取消",
    "distance entfernung strecke distancia 距离 miles",
    "duration dauer laufzeit durée duración seconds elapsed time zeit 耗时 时长 用时 所要時間",
    "size größe taille tamaño bytes volumen volume 大小 体积 容量",
    "share rate quote anteil taux tasa percent pct percentage 比例 占比 率",
    "missing nulls null fehlen fehlende fehlt manquantes manquants faltan faltantes 缺失 空值 欠損",
    "distinct unique verschiedene distincts distintos 不同 唯一",
    "rows row n zeilen lignes filas 行",
    "mean avg average mittelwert durchschnitt moyenne promedio media 均值 平均",
    "median médiane mediana 中位数 中央値 p50 q50 50%",
    "min minimum lowest kleinster mindestens 最小 最低 最小值",
    "max maximum highest größter 最大 最高 最大值",
    "sd std stddev deviation standardabweichung 标准差 標準偏差",
    "quartile q75 75% quartil 四分位 四分之三",
    "title titel titellänge track tracks titre canción 曲目",
    "unit units einheiten einheit stück unités unidades quantity qty menge 数量 销量",
    "invoice invoices rechnung rechnungen facture factures factura 发票",
    "profit gewinn bénéfice beneficio ganancia 利润 利益",
    "cost costs kosten coût coûts costo coste 成本 費用",
    "user users nutzer benutzer utilisateurs usuarios 用户 ユーザー",
    "visit visits besuche visites visitas sessions 访问 访问量",
    "age alter âge edad 年龄 年齢",
    "height höhe hauteur altura 高度 身高",
    "employee employees staff mitarbeiter employés empleados headcount 员工 従業員",
    "product products produkt produkte produit produits producto productos 产品 商品 製品",
    "region regions region regionen région régions región 区域 地区 地域",
    "country countries land länder pays país países 国家 国",
    "month months monat monate mois mes meses 月 月份",
    "energy generation erzeugung strom énergie energía net 发电 电量",
    "female women frauen femme femmes mujer mujeres 女 女性",
    "male men männer homme hommes hombre hombres 男 男性",
    "error errors fehler erreur erreurs errores 错误 エラー",
    "test tests prüfungen 测试 テスト",
    "insert insertions lines added inserted zeilen hinzugefügt 插入 新增",
    "delete deletions removed deleted gelöscht 删除",
    "file files datei dateien fichier fichiers archivo archivos 文件 ファイル",
)


@cache
def concepts() -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    """As ``hints``, for words of six languages that name what columns are about; each maps to the first word of its
    row."""
    found: dict[str, set[tuple[tuple[str, ...], str]]] = {}
    for line in _CONCEPTS:
        phrases = line.split()
        for phrase in phrases:
            words = [word for word, _, _ in tokens_of(phrase)]
            if words:
                found.setdefault(words[0], set()).add((tuple(words[1:]), phrases[0]))
    return {first: tuple(sorted(rest, key=lambda each: (-len(each[0]), each))) for first, rest in found.items()}
